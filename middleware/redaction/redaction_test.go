package redaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The secrets that are found in texts and in streams that are cut in any way, and the text
// that is left alone.

// secrets are made up. They are put together here, so that nobody who scans for real ones
// finds them.
var secrets = map[string]string{
	"api_key":      "sk-" + "proj-aB3dE5gH7jK9mN1pQ3",
	"aws":          "AKIA" + "IOSFODNN7EXAMPLE",
	"github":       "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
	"github_pat":   "github_pat_" + "11ABCDEFG0aaaaaaaaaaaa_bbbbbbbbbb",
	"slack":        "xoxb-" + "1234567890-abcdefghij",
	"google":       "AIza" + "SyA-1234567890abcdefghijklmnopqrstu",
	"stripe":       "sk_live_" + "abcdefghijklmnop1234",
	"jwt":          "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g",
	"bearer_token": "aaaabbbbccccddddeeee",
	"url_password": "hunter2",
	"private_key":  "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEowIBAAKCAQEA\nabc+/=\n-----END RSA PRIVATE KEY-----",
	"card_number":  "4111 1111 1111 1111",
}

// hide returns a text as it is in a tool's result behind the middleware.
func hide(t testing.TB, m holdfast.Middleware, text string) string {
	t.Helper()
	result, err := m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Text: text}, nil
	})(t.Context(), nil, holdfast.ToolCall{Name: "fetch"})
	if err != nil {
		t.Fatal(err)
	}
	return result.Text
}

func TestRedactionKnowsSecrets(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	tests := []struct{ give, want string }{
		{"", ""},
		{"the key is " + secrets["api_key"] + ".", "the key is [redacted:api_key]."},
		{secrets["aws"], "[redacted:api_key]"},
		{`{"token":"` + secrets["github"] + `"}`, `{"token":"[redacted:api_key]"}`},
		{secrets["github_pat"], "[redacted:api_key]"},
		{secrets["slack"], "[redacted:api_key]"},
		{secrets["google"], "[redacted:api_key]"},
		{secrets["stripe"], "[redacted:api_key]"},
		{secrets["jwt"], "[redacted:jwt]"},
		{"Authorization: Bearer " + secrets["bearer_token"], "Authorization: Bearer [redacted:bearer_token]"},
		{"bearer " + secrets["jwt"] + " it was", "bearer [redacted:bearer_token] it was"},
		{
			"postgres://app:" + secrets["url_password"] + "@db:5432/x",
			"postgres://app:[redacted:url_password]@db:5432/x",
		},
		{"redis://:" + secrets["url_password"] + "@r", "redis://:[redacted:url_password]@r"},
		{"a\n" + secrets["private_key"] + "\nb", "a\n[redacted:private_key]\nb"},
		{
			`{"key":"` + strings.ReplaceAll(secrets["private_key"], "\n", `\n`) + `"}`,
			`{"key":"[redacted:private_key]"}`,
		},
		{`{"key":"-----BEGIN PRIVATE ` + `KEY-----\nMIIE","n":1}`, `{"key":"[redacted:private_key]","n":1}`},
		{"card " + secrets["card_number"] + " 12/27", "card [redacted:card_number] 12/27"},
		{"12 " + secrets["card_number"], "12 [redacted:card_number]"},
		{"4111111111111111 5555-5555-5555-4444", "[redacted:card_number] [redacted:card_number]"},
		{
			"378282246310005, 30569309025904, 6011111111111117",
			"[redacted:card_number], [redacted:card_number], [redacted:card_number]",
		},
	}
	for _, tt := range tests {
		if got := hide(t, m, tt.give); got != tt.want {
			t.Errorf("%q\n got %q\nwant %q", tt.give, got, tt.want)
		}
		if again := hide(t, m, tt.want); again != tt.want {
			t.Errorf("what was redacted is redacted again: %q", again)
		}
	}
}

func TestRedactionLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	for _, text := range []string{
		"a risk-based task-oriented-workflow-of-some-length", "sk-short", "AKIA", "https://example.com:8080/a@b",
		"mailto:a@b.c",
		"Bearer of bad news", "eyJ.not.jwt", "4111 1111 1111 1112", "1234567890123456", "the year 2026, 13 of 19",
		"+49 170 1234567",
		"1732190000123456789", "9111111111111111",
		"the public part:\n-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
		"a4111111111111111", "umlauts äöü, \xff and no more",
	} {
		if got := hide(t, m, text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestRedactionWithPatternsOfOnesOwn(t *testing.T) {
	t.Parallel()
	off := false
	m := redaction.New(redaction.Options{Builtin: &off, Patterns: []redaction.Pattern{
		{Name: "pin", Regexp: `(?i)pin: (?P<secret>[0-9]{4,})?`},
		{Name: "customer", Regexp: `KD-[0-9]+`},
		{Name: "number", Regexp: `D-[0-9]{2}`},
	}})
	for give, want := range map[string]string{
		"Pin: 1234, pin: none": "Pin: [redacted:pin], pin: none",
		"KD-4711 and D-12":     "[redacted:customer] and [redacted:number]",
		secrets["api_key"]:     secrets["api_key"],
	} {
		if got := hide(t, m, give); got != want {
			t.Errorf("%q: got %q, want %q", give, got, want)
		}
	}
}

func TestRedactionMistakes(t *testing.T) {
	t.Parallel()
	off := false
	hooktest.WantInvalid(t, "redaction.New", redaction.New, map[string]redaction.Options{
		"nothing is redacted":    {Builtin: &off},
		`the name is "A key"`:    {Patterns: []redaction.Pattern{{Name: "A key", Regexp: "x"}}},
		"patterns[0]: regexp of": {Patterns: []redaction.Pattern{{Name: "a", Regexp: "("}}},
		"matches the empty text": {Patterns: []redaction.Pattern{{Name: "a", Regexp: "x*"}}},
		"is too large to search": {
			Patterns: []redaction.Pattern{{Name: "a", Regexp: strings.Repeat("abcdefghij", 120)}},
		},
	})
}

func TestRedactionOfWhatAToolReturns(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	parts := []holdfast.Part{
		{Type: holdfast.PartText, Text: "fine"},
		{Type: holdfast.PartText, Text: secrets["jwt"]},
		{Type: holdfast.PartText, Text: secrets["aws"]},
	}
	call := func(result holdfast.ToolResult, err error) (holdfast.ToolResult, error) {
		return m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
			return result, err
		})(t.Context(), nil, holdfast.ToolCall{Name: "fetch"})
	}
	got, err := call(holdfast.ToolResult{Parts: parts, Failed: true}, nil)
	if err != nil || !got.Failed || got.Parts[0].Text != "fine" || got.Parts[1].Text != "[redacted:jwt]" ||
		got.Parts[2].Text != "[redacted:api_key]" {
		t.Errorf("parts: %+v, %v", got, err)
	}
	if parts[1].Text != secrets["jwt"] {
		t.Error("the tool's own parts were changed")
	}
	plain := errors.New("no secret")
	if _, err := call(holdfast.ToolResult{}, plain); err != plain {
		t.Errorf("an error without a secret: %v", err)
	}
	cause := fmt.Errorf("dial %s: %w", "redis://u:"+secrets["url_password"]+"@h", context.DeadlineExceeded)
	if _, err := call(holdfast.ToolResult{}, cause); err == nil ||
		strings.Contains(err.Error(), secrets["url_password"]) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an error: %v", err)
	}
	ask := &holdfast.Interrupt{
		Message:  "Use " + secrets["aws"] + "?",
		Metadata: json.RawMessage(`{"key":"` + secrets["aws"] + `","card":4111111111111111}`),
	}
	var asked *holdfast.Interrupt
	if _, err := call(holdfast.ToolResult{}, ask); !errors.As(err, &asked) ||
		asked.Message != "Use [redacted:api_key]?" || !json.Valid(asked.Metadata) ||
		strings.Contains(string(asked.Metadata), "4111") || strings.Contains(ask.Message, "redacted") {
		t.Errorf("a question: %v, %s", err, asked.Metadata)
	}
	ask.Metadata = json.RawMessage(`{"key":"` + secrets["aws"] + `"}`)
	if _, err := call(holdfast.ToolResult{}, ask); !errors.As(err, &asked) ||
		string(asked.Metadata) != `{"key":"[redacted:api_key]"}` {
		t.Errorf("a question: %v, %s", err, asked.Metadata)
	}
	known := holdfast.Errorf("x", "Bad.").Wrap(cause)
	if _, err := call(holdfast.ToolResult{}, known); err == nil ||
		strings.Contains(err.Error(), secrets["url_password"]) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an error with a cause: %v", err)
	}
	var end *holdfast.EndRun
	stop := &holdfast.EndRun{
		Err: holdfast.Errorf("stop", "Bad key %s.", secrets["aws"]).WithHint("Replace %s.", secrets["aws"]),
	}
	if _, err := call(holdfast.ToolResult{}, stop); !errors.As(err, &end) ||
		strings.Contains(err.Error()+end.Err.Hint, secrets["aws"]) || end.Err.Code != "stop" {
		t.Errorf("the end of a run: %v", err)
	}
}

// stream passes deltas, and then an error if there is one, through the middleware.
func stream(
	t testing.TB, ctx context.Context, m holdfast.Middleware, failure error, deltas ...holdfast.Delta,
) ([]holdfast.Delta, error) {
	t.Helper()
	model := m.Model(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
			if failure != nil {
				yield(holdfast.Delta{}, failure)
			}
		}
	})
	var got []holdfast.Delta
	for d, err := range model(ctx, &holdfast.ModelRequest{}) {
		if err != nil {
			return got, err
		}
		got = append(got, d)
	}
	return got, nil
}

func said(deltas []holdfast.Delta) (text, reasoning string) {
	for _, d := range deltas {
		text, reasoning = text+d.Text, reasoning+d.Reasoning
	}
	return text, reasoning
}

// pieces cuts a text into deltas of n bytes.
func pieces(text string, n int) []holdfast.Delta {
	var out []holdfast.Delta
	for len(text) > n {
		out = append(out, holdfast.Delta{Text: text[:n]})
		text = text[n:]
	}
	return append(out, holdfast.Delta{Text: text}, holdfast.Delta{Finish: holdfast.FinishStop})
}

// TestRedactionOfAStream: a secret is hidden however the text is cut into pieces.
func TestRedactionOfAStream(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	for name, secret := range secrets {
		switch name {
		case "bearer_token":
			secret = "Bearer " + secret
		case "url_password":
			secret = "https://me:" + secret + "@example.com"
		}
		text := "Before it: " + secret + ", and après."
		want := hide(t, m, text)
		if strings.Contains(want, secrets[name]) {
			t.Fatalf("%s is not hidden: %s", name, want)
		}
		for n := 1; n < len(text); n++ {
			got, err := stream(t, t.Context(), m, nil, pieces(text, n)...)
			if joined, _ := said(got); err != nil || joined != want {
				t.Errorf("%s in pieces of %d: %q, want %q", name, n, joined, want)
			}
		}
	}
}

func TestRedactionIsSmooth(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	var deltas []holdfast.Delta
	words := strings.SplitAfter("Here is what I found about the task in 2026, with more to come ", " ")
	for _, w := range words[:len(words)-1] {
		deltas = append(deltas, holdfast.Delta{Text: w})
	}
	got, _ := stream(t, t.Context(), m, nil, deltas...)
	for i, d := range got {
		if d.Text != deltas[i].Text && strings.TrimSpace(d.Text) != "2026," && deltas[i].Text != "in " {
			t.Errorf("%q came out as %q", deltas[i].Text, d.Text)
		}
	}
}

func TestRedactionOfEverythingInADelta(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	usage := &holdfast.Usage{}
	call := &holdfast.CallDelta{Name: "login", Arguments: `{"key":"` + secrets["aws"] + `"}`}
	got, err := stream(t, t.Context(), m, nil, holdfast.Delta{Text: "text"},
		holdfast.Delta{Reasoning: "hm " + secrets["aws"][:10]},
		holdfast.Delta{Reasoning: secrets["aws"][10:], ReasoningSecret: "sig"}, holdfast.Delta{Text: "more"},
		holdfast.Delta{Usage: usage}, holdfast.Delta{Call: call},
		holdfast.Delta{Reasoning: "end", Finish: holdfast.FinishToolCalls})
	want := []holdfast.Delta{
		{},
		{Text: "text"},
		{Reasoning: "hm "},
		{ReasoningSecret: "sig"},
		{Reasoning: "[redacted:api_key]"},
		{Usage: usage},
		{Text: "more", Call: call},
		{Reasoning: "end", Finish: holdfast.FinishToolCalls},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestRedactionOfAStreamThatFails(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	broken := &holdfast.ModelError{Public: "The key " + secrets["aws"] + " is bad.", Retryable: true}
	got, err := stream(t, t.Context(), m, broken, holdfast.Delta{Text: "it is " + secrets["aws"][:12]})
	var failed *holdfast.ModelError
	if text, _ := said(got); text != "it is " || !errors.As(err, &failed) ||
		failed.Public != "The key [redacted:api_key] is bad." || !failed.Retryable {
		t.Errorf("got %q, %v", text, err)
	}
	known := holdfast.Errorf("broke", "%s", secrets["aws"])
	if _, err := stream(t, t.Context(), m, known); err == nil || strings.Contains(err.Error(), secrets["aws"]) {
		t.Errorf("got %v", err)
	}
}

func TestRedactionOfAReaderThatStops(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	for _, second := range []holdfast.Delta{{Text: "a b"}, {Reasoning: "a b"}} {
		model := m.Model(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if yield(holdfast.Delta{Text: "one"}, nil) && yield(second, nil) {
					t.Error("the model is read on")
				}
			}
		})
		n := 0
		for range model(t.Context(), &holdfast.ModelRequest{}) {
			if n++; n == 2 {
				break
			}
		}
	}
}

// TestRedactionOfLongSecrets: a secret may be longer than what a stream holds back; what
// only looks like one is released in the end.
func TestRedactionOfLongSecrets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("MIIEowIBAAKCAQEA\n", 900)
	key := "-----BEGIN PRIVATE " + "KEY-----\n" + long + "-----END PRIVATE KEY-----"
	m := redaction.New(redaction.Options{Patterns: []redaction.Pattern{
		{Name: "block", Regexp: `(?s)<é.*é>`}, {Name: "word", Regexp: "WORD[a-zé]+"},
	}})
	for give, want := range map[string]string{
		"key: " + key + "'done'":                      "key: [redacted:private_key]'done'",
		"<é" + strings.Repeat("é ", 3000) + "the end": "<é" + strings.Repeat("é ", 3000) + "the end",
		"<é" + strings.Repeat("-", 8000) + key + "'": "<é" + strings.Repeat("-", 8000) +
			"[redacted:private_key]'",
		"<é" + strings.Repeat("\x80", 10000) + "end":         "<é" + strings.Repeat("\x80", 10000) + "end",
		"x WORDbb" + strings.Repeat("aé", 5000) + "\x80\xff": "x [redacted:word]\x80\xff",
	} {
		for _, n := range []int{250, len(give)} {
			got, err := stream(t, t.Context(), m, nil, pieces(give, n)...)
			if joined, _ := said(got); err != nil || joined != want {
				t.Errorf("%.20q… in pieces of %d: %d bytes %.80q, want %d", give, n, len(joined), joined, len(want))
			}
		}
	}
	// The middle of this one cannot be dropped: the rest would be another text.
	odd := "Q" + strings.Repeat(strings.Repeat("1", 300)+strings.Repeat("a", 300), 50)
	of := redaction.New(redaction.Options{Patterns: []redaction.Pattern{{Name: "odd",
		Regexp: `Q(?:[0-9]{300}[a-z]{300})+`}}})
	got, err := stream(t, t.Context(), of, nil, pieces(odd+" done", len(odd))...)
	if joined, _ := said(got); err != nil || joined != "[redacted:odd] done" {
		t.Errorf("%d bytes, %v", len(joined), err)
	}
	// Text that was released in the end, although it was the beginning of a secret, is not
	// lost.
	late := "<é" + strings.Repeat("-", 9000) + "<"
	got, err = stream(t, t.Context(), m, nil, holdfast.Delta{Text: late}, holdfast.Delta{Text: "é é>"},
		holdfast.Delta{Finish: holdfast.FinishStop})
	if joined, _ := said(got); err != nil || joined != late+"é é>" {
		t.Errorf("%d bytes, %v", len(joined), err)
	}
}

// TestRedactionCounts: the state has a count by name, and each iteration has one notice.
func TestRedactionCounts(t *testing.T) {
	t.Parallel()
	var notices []string
	states := state.NewLive(nil)
	ctx := store.ContextWithLedger(state.ContextWith(t.Context(), states), memstore.New())
	ctx = holdfast.ContextWithRun(ctx, &holdfast.RunContext{
		Notify: func(_ context.Context, name string, value any) error {
			b, err := json.Marshal(value)
			notices = append(notices, name+" "+string(b))
			return err
		}})
	m := redaction.New(redaction.Options{})
	for range 2 {
		_, err := m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
			return holdfast.ToolResult{Text: secrets["aws"] + " " + secrets["jwt"]}, nil
		})(ctx, nil, holdfast.ToolCall{Name: "fetch"})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream(t, ctx, m, nil, pieces(secrets["aws"], 3)...); err != nil {
		t.Fatal(err)
	}
	m.AfterIteration(ctx, nil, nil)
	m.AfterIteration(ctx, nil, nil) // nothing new
	want := `holdfast.redacted {"where":["tool:fetch","model"],"names":["api_key","jwt"],"count":5}`
	if len(notices) != 1 || notices[0] != want {
		t.Errorf("got %q, want %s", notices, want)
	}
	b, err := json.Marshal(states.Now())
	if err != nil || !strings.Contains(string(b), `"holdfast.redaction":{"counts":{"api_key":3,"jwt":2}}`) {
		t.Errorf("got %s, %v", b, err)
	}
	m.AfterIteration(t.Context(), nil, nil) // outside a run it does nothing
}

// FuzzStream: however a text is cut, the result is the same as for the whole text.
func FuzzStream(f *testing.F) {
	for _, secret := range secrets {
		f.Add("a "+secret+" b", []byte{1, 2, 3})
		f.Add("x://u:"+secret+"@h bearer "+secret, []byte{7})
	}
	f.Add("é<x>pin: 1234</x> abc startGEHEIM\n4111 1111-1111 1111 5555555555554444", []byte{5, 1})
	f.Add("ab abccd 1=;; 1=; =;;", []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	m := redaction.New(redaction.Options{Patterns: []redaction.Pattern{
		{
			Name:   "pin",
			Regexp: `pin: (?P<secret>[0-9]{4})\b`,
		},
		{Name: "tag", Regexp: `(?s)<x>.*?</x>`},
		{Name: "start", Regexp: `^start\w`},
		{
			Name:   "end",
			Regexp: `(?i)geheim\w*$`,
		},
		{Name: "over", Regexp: `a+b|bc{2,3}d?|(?:ca){0,0}cac`},
		{Name: "edge", Regexp: `1=|=;;`},
		{Name: "line", Regexp: `(?m)^k.é+`},
	}})
	f.Fuzz(func(t *testing.T, text string, cuts []byte) {
		if len(text) > 4<<10 || len(cuts) > 4<<10 {
			return
		}
		want := hide(t, m, text)
		var deltas []holdfast.Delta
		rest := text
		for _, c := range cuts {
			n := min(int(c)%32, len(rest))
			deltas, rest = append(deltas, holdfast.Delta{Text: rest[:n]}), rest[n:]
		}
		deltas = append(deltas, holdfast.Delta{Text: rest}, holdfast.Delta{Finish: holdfast.FinishStop})
		got, err := stream(t, t.Context(), m, nil, deltas...)
		if joined, _ := said(got); err != nil || joined != want {
			t.Errorf("%q cut by %v\n got %q\nwant %q", text, cuts, joined, want)
		}
	})
}

// TestRedactionLeavesMeanings: an error keeps what it means besides its text, and a call can
// keep a value.
func TestRedactionLeavesMeanings(t *testing.T) {
	t.Parallel()
	m := redaction.New(redaction.Options{})
	after := func(give error) error {
		_, err := m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
			return holdfast.ToolResult{}, give
		})(t.Context(), nil, holdfast.ToolCall{Name: "pay"})
		return err
	}
	public := holdfast.Errorf("pay_failed", "The bank does not answer to %s.", secrets["aws"])
	for _, give := range []error{
		fmt.Errorf("%w: %w", holdfast.ErrOutcomeUnknown, public), errors.Join(public, holdfast.ErrOutcomeUnknown),
		public.Wrap(holdfast.ErrOutcomeUnknown),
		fmt.Errorf("%s: %w", secrets["aws"], holdfast.ErrOutcomeUnknown),
	} {
		if got := after(give); !errors.Is(got, holdfast.ErrOutcomeUnknown) ||
			strings.Contains(fmt.Sprint(got), secrets["aws"]) {
			t.Errorf("%v became %v", give, got)
		}
	}
	login := &credential.LoginRequired{URL: "https://login.example/?state=" + secrets["jwt"]}
	var ask, was *holdfast.Interrupt
	if got := after(login); !errors.As(got, &ask) || !errors.As(error(login), &was) ||
		string(ask.Metadata) != string(was.Metadata) {
		t.Errorf("a user cannot log in any more: %+v", ask)
	}
	var kept string
	ctx := holdfast.ContextWithRun(t.Context(), &holdfast.RunContext{
		Keep: func(_ context.Context, call string, value json.RawMessage) error {
			kept = call + string(value)
			return nil
		},
	})
	_, err := m.Run(func(ctx context.Context, _ *holdfast.Iteration) (string, error) {
		return "", holdfast.Keep(holdfast.ContextWithCall(ctx, holdfast.ToolCall{ID: "c1"}, nil), json.RawMessage(`7`))
	})(ctx, &holdfast.Iteration{})
	if err != nil || kept != "c17" {
		t.Errorf("kept %q, %v", kept, err)
	}
}
