package modelhttp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/model"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzEvents: it makes no difference where the network splits a stream, and no event is
// larger than the bound.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\r\ndata: }\r\n\r\n: c\ndata:[DONE]"))
	f.Add([]byte("event: error\ndata: x\n\nerror: y\n\ndata:\n\n"))
	f.Add([]byte("event: a\n\nevent: error\n\ndata: z"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, pieces := eventsOf(t, bytes.NewReader(stream)),
			eventsOf(t, iotest.OneByteReader(bytes.NewReader(stream)))
		if whole != pieces {
			t.Errorf("in one piece:\n%s\nbyte by byte:\n%s", whole, pieces)
		}
	})
}

func eventsOf(t *testing.T, r io.Reader) string {
	e, log := &events{r: bufio.NewReaderSize(r, readBuffer)}, ""
	for {
		ev, err := e.next()
		if err != nil {
			return log + err.Error()
		}
		if len(ev.Data) == 0 || len(ev.Data) > MaxPiece {
			t.Errorf("an event of %d bytes", len(ev.Data))
		}
		log += fmt.Sprintf("%q %v\n", ev.Data, ev.Failed)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

func TestTooLong(t *testing.T) {
	t.Parallel()
	e := &events{r: bufio.NewReaderSize(io.MultiReader(strings.NewReader("data: "), endless{}), readBuffer)}
	if _, err := e.next(); !errors.Is(err, errTooLong) {
		t.Errorf("%v", err)
	}
}

// TestWaits: all the forms in which providers say how long to wait.
func TestWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := &Client{now: func() time.Time { return now }}
	for name, w := range map[string]struct {
		header map[string]string
		body   string
		want   time.Duration
	}{
		"seconds": {map[string]string{"Retry-After": "1.5"}, "", 1500 * time.Millisecond},
		"a date": {map[string]string{"Retry-After": now.Add(30 * time.Second).Format(http.TimeFormat)}, "",
			30 * time.Second},
		"a far date": {map[string]string{"Retry-After": now.AddDate(5, 0, 0).Format(http.TimeFormat)}, "",
			maxRetryAfter},
		"milliseconds": {map[string]string{"Retry-After-Ms": "250", "Retry-After": "9"}, "",
			250 * time.Millisecond},
		"more than fits":   {map[string]string{"Retry-After": "1e300"}, "", maxRetryAfter},
		"infinite":         {map[string]string{"Retry-After": "Inf"}, "", maxRetryAfter},
		"not a number":     {map[string]string{"Retry-After": "NaN"}, "", 0},
		"less than none":   {map[string]string{"Retry-After": "-5"}, "", 0},
		"words":            {map[string]string{"Retry-After": "soon"}, "", 0},
		"no header at all": {map[string]string{"X": "5"}, "", 0},
		"OpenAI's limits": {map[string]string{
			"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "12s",
			"X-Ratelimit-Remaining-Tokens": "900", "X-Ratelimit-Reset-Tokens": "6m0s"},
			"", 12 * time.Second},
		"a limit for long": {map[string]string{"X-Ratelimit-Reset-Tokens": "6m0s"}, "", maxRetryAfter},
		"Anthropic's limits": {map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0",
			"Anthropic-Ratelimit-Tokens-Reset": now.Add(9 * time.Second).Format(time.RFC3339)},
			"", 9 * time.Second},
		"Gemini's body": {nil, `[{"error":{"status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}}]`,
			22 * time.Second},
		"in words": {nil, `{"error":{"message":"Rate limit reached. Please try again in 1m12.5s. Visit us."}}`,
			72500 * time.Millisecond},
		"in bad words": {nil, `{"error":{"message":"Try again in a while"}}`, 0},
	} {
		h := http.Header{}
		for k, v := range w.header {
			h.Set(k, v)
		}
		err := c.refused(&http.Response{StatusCode: http.StatusTooManyRequests, Header: h}, []byte(w.body))
		var e *holdfast.ModelError
		if !errors.As(err, &e) || e.Kind != failure.Rate || !e.Retryable || e.RetryAfter != w.want {
			t.Errorf("%s: %+v, want %v", name, e, w.want)
		}
	}
}

// TestKinds: the table of failures.
func TestKinds(t *testing.T) {
	t.Parallel()
	said := func(typ, code, message string) string {
		return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":%q}}`, typ, code, message)
	}
	perDay := `{"error":{"status":"RESOURCE_EXHAUSTED","code":429,` +
		`"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure",` +
		`"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}`
	for _, c := range []struct {
		status int // 0: within an answer
		body   string
		kind   failure.Kind
		retry  bool
	}{
		{500, "", failure.Overloaded, true}, {502, "<html>", failure.Overloaded, true},
		{503, "", failure.Overloaded, true},
		{504, "", failure.Overloaded, true}, {529, said("overloaded_error", "", ""), failure.Overloaded, true},
		{408, "", failure.Overloaded, true}, {409, "", failure.Overloaded, true}, {425, "", failure.Overloaded, true},
		{0, said("overloaded_error", "", "Overloaded"), failure.Overloaded, true},
		{0, said("api_error", "", ""), failure.Overloaded, true},
		{0, said("timeout_error", "", ""), failure.Overloaded, true},
		{0, said("", "server_error", ""), failure.Overloaded, true},
		{0, said("", "server_is_overloaded", ""), failure.Overloaded, true},
		{0, `{"error":{"code":503,"status":"UNAVAILABLE"}}`, failure.Overloaded, true},
		{0, said("", "", "whatever"), failure.Overloaded, true}, {0, "GPU on fire", failure.Overloaded, true},
		{429, "", failure.Rate, true}, {429, said("rate_limit_error", "", ""), failure.Rate, true},
		{503, said("", "slow_down", ""), failure.Rate, true},
		{0, said("", "rate_limit_exceeded", ""), failure.Rate, true},
		{0, `{"error":{"status":"RESOURCE_EXHAUSTED"}}`, failure.Rate, true},
		{402, "", failure.Quota, false},
		{429, said("insufficient_quota", "insufficient_quota", ""), failure.Quota, false},
		{429, said("", "credit_balance_exhausted", ""), failure.Quota, false},
		{403, said("billing_error", "", ""), failure.Quota, false},
		{400, said("invalid_request_error", "", "Your credit balance is too low to access the API."), failure.Quota,
			false},
		{429, perDay, failure.Quota, false},
		{0, said("", "billing_hard_limit_reached", ""), failure.Quota, false},
		{429, said("exceeded_current_quota_error", "", ""), failure.Quota, false},
		{400, said("invalid_request_error", "",
			"You have reached your specified API usage limits. You will regain access on 2026-12-01."),
			failure.Quota, false},
		{400, said("invalid_request_error", "",
			"input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000"),
			failure.TooLong, false},
		{400, said("", "", "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
			failure.TooLong, false},
		{422, said("", "", "Input is too long for requested model."), failure.TooLong, false},
		{500, said("", "", "the context window is out"), failure.Overloaded, true},
		{429, said("rate_limit_error", "", "Usage credits are required for long context requests."), failure.TooLong,
			false},
		{400, said("invalid_request_error", "", "Output blocked by content filtering policy"), failure.Refused, false},
		{403, said("", "", "Your chosen model requires moderation and your input was flagged for \"violence\"."),
			failure.Refused, false},
		{0, said("", "invalid_encrypted_content", "The encrypted content could not be verified."), failure.Invalid,
			false},
		{401, "", failure.Auth, false}, {403, "", failure.Auth, false},
		{404, said("", "model_not_found", ""), failure.Auth, false},
		{0, said("authentication_error", "", ""), failure.Auth, false},
		{400, `{"error":{"code":400,"status":"UNAUTHENTICATED"}}`, failure.Auth, false},
		{400, said("invalid_request_error", "context_length_exceeded", ""), failure.TooLong, false},
		{413, "", failure.TooLong, false},
		{400, said("invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum"), failure.TooLong,
			false},
		{0, said("", "", "Your input exceeds the context window of this model."), failure.TooLong, false},
		{400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (1048577) exceeds ` +
			`the maximum number of tokens allowed (1048576)."}}`,
			failure.TooLong, false},
		{429, said("tokens", "rate_limit_exceeded", "Request too large for gpt-x"), failure.TooLong, false},
		{400, said("", "content_filter", ""), failure.Refused, false},
		{400, said("", "invalid_prompt", ""), failure.Refused, false},
		{403, said("", "usage_policy_violation", ""), failure.Refused, false},
		{400, said("invalid_request_error", "", "what?"), failure.Invalid, false}, {422, "", failure.Invalid, false},
		{0, said("invalid_request_error", "", "what?"), failure.Invalid, false},
		{400, said("", "invalid_image_url", ""), failure.Invalid, false},
	} {
		e := (&Client{}).classify(ParseFailure(c.status, []byte(c.body)))
		if e.Kind != c.kind || e.Retryable != c.retry || e.Public == "" {
			t.Errorf("%d %s: %s, retry %v, %q", c.status, c.body, e.Kind, e.Retryable, e.Public)
		}
	}
	for said, want := range map[string]bool{"true": true, "false": false} {
		for _, status := range []int{400, 503} {
			var e *holdfast.ModelError
			err := (&Client{now: time.Now}).refused(&http.Response{StatusCode: status,
				Header: http.Header{"X-Should-Retry": {said}}}, nil)
			if !errors.As(err, &e) || e.Retryable != want {
				t.Errorf("%d with x-should-retry %s: %+v", status, said, e)
			}
		}
	}
}

// TestSeal: what is sealed is that, byte for byte, whatever the names are.
func TestSeal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"m", "m/1:x", `m"\\`, "mé\n\xff"} {
		c := &Client{Provider: "p", Model: name}
		a, b := json.RawMessage(`{"a": "<é>"}`), json.RawMessage("[1,\n2]")
		var s secret
		if err := json.Unmarshal([]byte(c.Seal(3, 2, a, b)), &s); err != nil || s.Text != 3 || s.Calls != 2 ||
			len(s.Blocks) != 2 || string(s.Blocks[0]) != string(a) || string(s.Blocks[1]) != string(b) {
			t.Errorf("%q: %+v, %v", name, s, err)
		}
		if blocks := c.Unseal(c.Seal(0, 0, a)); utf8.ValidString(name) &&
			(len(blocks) != 1 || string(blocks[0]) != string(a)) {
			t.Errorf("%q: %s", name, blocks)
		}
	}
}

// TestDeepSchema: a schema that is nested absurdly deep is not sent.
func TestDeepSchema(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return strings.Repeat(`{"items":`, n) + `{"description":"{[\"{[\\"}` + strings.Repeat("}", n)
	}
	for schema, want := range map[string]string{
		"": `{"type":"object","properties":{}}`, deep(0): deep(0), deep(maxNesting - 1): deep(maxNesting - 1),
		deep(maxNesting): `{"type":"object"}`,
	} {
		if got := Parameters(&holdfast.ToolSpec{Parameters: json.RawMessage(schema)}); string(got) != want {
			t.Errorf("%.80s… becomes %.80s", schema, got)
		}
	}
}

// TestPieces: an answer is put together again as the model gave it, whatever stands
// between; what another model gave is left out.
func TestPieces(t *testing.T) {
	t.Parallel()
	c, other := &Client{Provider: "p", Model: "m"}, &Client{Provider: "p", Model: "m2"}
	block := func(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf("%d", n)) }
	thought := func(secret string) holdfast.Message {
		return holdfast.Message{Role: holdfast.RoleReasoning, EncryptedValue: secret}
	}
	says := func(text string, calls ...string) holdfast.Message {
		m := holdfast.Message{Role: holdfast.RoleAssistant, Text: text}
		for _, name := range calls {
			m.Calls = append(m.Calls, holdfast.ToolCall{Name: name})
		}
		return m
	}
	for name, test := range map[string]struct {
		messages []holdfast.Message
		want     []string // of each assistant message
	}{
		"plain": {[]holdfast.Message{says("hi", "f")}, []string{"hi f()"}},
		"before all": {[]holdfast.Message{thought(c.Seal(0, 0, block(1), block(2))), says("hi", "f")},
			[]string{"1 2 hi f()"}},
		"between": {[]holdfast.Message{thought(c.Seal(0, 0, block(1))), thought(c.Seal(1, 0, block(2))),
			thought(c.Seal(2, 1, block(3))), says("ab", "f", "g")},
			[]string{"1 a 2 b f() 3 g()"}},
		"another model's": {[]holdfast.Message{thought(other.Seal(0, 0, block(1))), says("hi")}, []string{"hi"}},
		"nobody's":        {[]holdfast.Message{thought("opaque"), thought(""), says("hi")}, []string{"hi"}},
		"after the text":  {[]holdfast.Message{says("ab"), thought(c.Seal(1, 0, block(1)))}, []string{"a 1 b"}},
		"two answers": {[]holdfast.Message{says("ab"), thought(c.Seal(2, 0, block(1))),
			thought(c.Seal(0, 0, block(2))), says("cd")},
			[]string{"ab 1", "2 cd"}},
		"a shorter text": {[]holdfast.Message{thought(c.Seal(99, 9, block(1))), says("ab", "f")},
			[]string{"ab f() 1"}},
		"in the middle of é": {[]holdfast.Message{thought(c.Seal(1, 0, block(1))), says("éa")}, []string{"é 1 a"}},
		"less than no text": {[]holdfast.Message{thought(`{"provider":"p","model":"m","text":-5,` +
			`"calls":-1,"blocks":[1]}`),
			says("ab")},
			[]string{"1 ab"}},
		"without any answer": {[]holdfast.Message{thought(c.Seal(0, 0, block(1))), {Role: holdfast.RoleUser}}, nil},
		"before another user": {[]holdfast.Message{thought(c.Seal(0, 0, block(1))), {Role: holdfast.RoleUser},
			says("ab")},
			[]string{"ab"}},
	} {
		var got []string
		for i, m := range test.messages {
			if m.Role != holdfast.RoleAssistant {
				continue
			}
			var line []string
			for _, p := range c.Pieces(test.messages, i) {
				switch {
				case p.Call != nil:
					line = append(line, p.Call.Name+"()")
				default:
					line = append(line, p.Text+string(p.Block))
				}
			}
			got = append(got, strings.Join(line, " "))
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestSlowUpload: a provider may start its answer before it has read the whole request,
// which is still sent to the end.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	body := []byte("the whole conversation")
	sent := &sending{body: body}
	r := sent.reader()
	half := make([]byte, 5)
	if _, err := io.ReadFull(r, half); err != nil {
		t.Fatal(err)
	}
	sent.forget()
	rest, err := io.ReadAll(r)
	if err != nil || string(half)+string(rest) != string(body) {
		t.Errorf("%q and %q: %v", half, rest, err)
	}
}

// TestProxy: a proxy of the options, none, or that of the environment; its password is a
// secret.
func TestProxy(t *testing.T) {
	t.Parallel()
	o := model.Options{Model: "m", BaseURL: "https://host", Getenv: func(string) string { return "" }}
	for proxy, want := range map[string]string{"http://user:hush-hush@proxy:3128": "proxy:3128",
		"socks5://proxy:1080": "proxy:1080", "direct": ""} {
		o.Proxy = proxy
		c, err := New(Provider{}, o)
		if err != nil {
			t.Errorf("%s: %v", proxy, err)
			continue
		}
		transport, ok := c.http.Transport.(*http.Transport)
		if !ok {
			t.Fatalf("the transport is a %T", c.http.Transport)
		}
		got := ""
		if transport.Proxy != nil {
			u, err := transport.Proxy(&http.Request{})
			if err != nil {
				t.Fatal(err)
			}
			got = u.Host
		}
		if got != want {
			t.Errorf("%s: %q", proxy, got)
		}
		if text := c.quote("hush-hush"); want == "proxy:3128" && text != "[secret]" {
			t.Errorf("the password is logged: %s", text)
		}
	}
	for _, bad := range []string{"other:3128", "ftp://hush-hush", "http://%zz"} {
		o.Proxy = bad
		if _, err := New(Provider{}, o); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	o.Proxy, o.HTTP = "http://proxy:1", &http.Client{}
	if _, err := New(Provider{}, o); err == nil {
		t.Error("a proxy and a client are taken together")
	}
}

// transport answers every request with what is read from body.
type transport struct {
	body func(*http.Request) io.ReadCloser
}

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body := f.body(r)
	if body == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
}

// lines is a parser for which every event is a text.
type lines struct{ *Answer }

func (l lines) Event(ev Event) error    { return l.Emit(holdfast.Delta{Text: string(ev.Data)}) }
func (l lines) Whole(data []byte) error { return l.NotStreamed(data) }
func (l lines) Ended(cause error) error { return l.Truncated(cause) }
func parseLines(a *Answer) Parser       { return lines{a} }

// TestParams: the parameters are what they are in JSON, however a program writes them, and
// what the program does with its map afterwards changes nothing.
func TestParams(t *testing.T) {
	t.Parallel()
	own := map[string]any{
		"text": map[string]string{"verbosity": "low"}, "thinking": struct {
			Type string `json:"type"`
		}{"adaptive"}, "seed": int64(1<<62 + 1), "temperature": 0.20,
	}
	client, err := New(Provider{}, model.Options{Model: "m", Key: "k", BaseURL: "https://host", Params: own})
	if err != nil {
		t.Fatal(err)
	}
	own["seed"] = 1
	for _, name := range []string{"text", "thinking"} {
		if _, is := client.Params[name].(map[string]any); !is {
			t.Errorf("%s is a %T", name, client.Params[name])
		}
	}
	if body := string(NewBody(client.Params).
		Bytes()); body != `{"seed":4611686018427387905,"temperature":0.2,"text":{"verbosity":"low"},`+
		`"thinking":{"type":"adaptive"}` {
		t.Error(body)
	}
}

// TestUsage: what a provider cannot mean is not counted, and no sum overflows.
func TestUsage(t *testing.T) {
	t.Parallel()
	n := func(n int64) *int64 { return &n }
	u := Total(&holdfast.Usage{
		InputTokens:     Sum(n(math.MaxInt64), n(math.MaxInt64), n(-5)),
		OutputTokens:    n(math.MaxInt64),
		ReasoningTokens: n(-1),
		CachedInput:     n(7),
	})
	got, err := json.Marshal(u)
	const want = `{"inputTokens":1000000000000,"outputTokens":1000000000000,` +
		`"totalTokens":1000000000000,"cachedInputTokens":7}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if u := Total(&holdfast.Usage{InputTokens: n(3), OutputTokens: n(math.MinInt64),
		TotalTokens: n(-3)}); u.OutputTokens != nil || u.TotalTokens != nil || *u.InputTokens != 3 {
		t.Errorf("%+v", u)
	}
}

// TestSilence: a provider that sends nothing for the timeout is given up, before its
// answer and within it; one that goes on sending is not, and neither is one whose reader
// is slow.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body func(*http.Request) io.ReadCloser
		said int
		took time.Duration
	}{
		"no answer": {func(*http.Request) io.ReadCloser { return nil }, 0, 5 * time.Second},
		"silence after words": {func(r *http.Request) io.ReadCloser {
			out, in := io.Pipe()
			go func() {
				for range 3 {
					time.Sleep(4 * time.Second)
					_, _ = io.WriteString(in, "data: x\n\n")
				}
				<-r.Context().Done()
				_ = in.CloseWithError(r.Context().Err())
			}()
			return out
		}, 3, 4*time.Second + 3*time.Minute + 5*time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, err := New(Provider{}, model.Options{
				Model:   "m",
				BaseURL: "https://host",
				Timeout: 5 * time.Second,
				HTTP:    &http.Client{Transport: transport{c.body}},
				Getenv:  func(string) string { return "" },
			})
			if err != nil {
				t.Fatal(err)
			}
			began, said := time.Now(), 0
			var last error
			client.Stream(t.Context(), "/", NewBody(nil), func(d holdfast.Delta, err error) bool {
				if last = err; err == nil {
					said++
					time.Sleep(time.Minute) // the reader
				}
				return true
			}, parseLines)
			var e *holdfast.ModelError
			if !errors.As(last, &e) || e.Kind != failure.Cut || !e.Retryable || said != c.said {
				t.Errorf("%s: after %d texts %v", name, said, last)
			}
			if took := time.Since(began); took != c.took {
				t.Errorf("%s: it took %v, want %v", name, took, c.took)
			}
		})
	}
}
