package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
)

var update = flag.Bool("update", false, "write the golden files")

func testModel(t testing.TB, params map[string]any) *Model {
	t.Helper()
	m, err := New(Options{Model: "m1", Key: modeltest.Key, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func reader() *modeltest.Reader {
	m := &Model{client: &modelhttp.Client{Provider: provider, Model: "m1"}}
	return &modeltest.Reader{Client: m.client, Parser: m.parser, Ends: []string{completed, incomplete}}
}

func read(t testing.TB, r io.Reader) string {
	t.Helper()
	return reader().Read(t, r)
}

func FuzzStream(f *testing.F) {
	modeltest.Fuzz(f, conforming(), reader(),
		done(-1, callItem("a", "f", "{}"))+done(-1, callItem("a", "f", "{ }"))+terminal("incomplete", ""),
		`{"object":"response","status":"completed","output":[{"type":"message",`+
			`"content":[{"type":"refusal","refusal":"no"}]}]}`)
}

// FuzzPlainText: what is found in an event that is not decoded is what decoding finds.
func FuzzPlainText(f *testing.F) {
	f.Add("0", "msg_1", "text", `}`)
	f.Add("12", "a b", "é\u2028", `,"logprobs":[],"obfuscation":"x"}`)
	f.Add("1", "x", `a\n`, `}`)
	f.Add("01", "x", "a\xff", `,"obfuscation":"x","delta":"y"}`)
	f.Fuzz(func(t *testing.T, index, id, text, after string) {
		data := string(beforeSequence) + "3" + string(beforeItem) + id + string(beforeOutput) + index +
			string(beforeContent) + "0" + string(beforeText) + text + `"` + after
		got, at, ok := plainText([]byte(data))
		if !ok {
			return
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil || string(e.Delta) != got || e.Index != at ||
			e.Type != "response.output_text.delta" {
			t.Errorf("%s is read as %q of %d, decoded as %+v: %v", data, got, at, e, err)
		}
	})
}

// TestPlainTextIsUsed: the usual events are not decoded.
func TestPlainTextIsUsed(t *testing.T) {
	t.Parallel()
	for _, tail := range []string{`}`, `,"logprobs":[]}`, `,"logprobs":[],"obfuscation":"tzo4lGqn"}`,
		`,"obfuscation":""}`} {
		text, index, ok := plainText([]byte(`{"type":"response.output_text.delta","sequence_number":12,` +
			`"item_id":"msg_0a-b","output_index":3,` +
			`"content_index":0,"delta":"hi, é"` +
			tail))
		if !ok || text != "hi, é" || index != 3 {
			t.Errorf("%s: %q of %d, %v", tail, text, index, ok)
		}
	}
}

// TestForms: the ways in which servers send the same.
func TestForms(t *testing.T) {
	t.Parallel()
	message := `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hel"},` +
		`{"type":"output_text","text":"lo"}]}`
	refusal := `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`
	hello, noMore := "\"Hel\" \"\" \"\"  \n\"lo\" \"\" \"\"  \n\"\" \"\" \"\"  stop\n<nil>",
		"\"No.\" \"\" \"\"  \n\"\" \"\" \"\"  content_filter\n<nil>"
	called := func(pieces ...string) string {
		out := ""
		for i, p := range pieces {
			out += fmt.Sprintf("\"\" \"\" \"\" {0 %s %s } \n", [2]string{"c1 f", " "}[min(i, 1)], p)
		}
		return out + "\"\" \"\" \"\"  tool_calls\n<nil>"
	}
	for name, c := range map[string][2]string{
		"a text at its end alone": {done(0, message) + terminal("completed", ""), hello},
		"a text in the response": {sse("response.completed", `,"response":{"status":"completed","output":[`+message+
			`]}`),
			hello},
		"not a stream": {`{"object":"response","status":"completed","error":null,"output":[` + message +
			`]}`, hello},
		"a text after its pieces": {delta(0, "output_text", "Hel") + delta(0, "output_text", "lo") +
			done(0, message) + done(0, message) + terminal("completed", ""), hello},
		"null as an error": {sse("response.output_text.delta", `,"error":null,"output_index":0,"delta":"Hel"`) +
			delta(0, "output_text", "lo") + terminal("completed", ""),
			hello},
		"a refusal": {added(0, refusal) + delta(0, "refusal", "No.") + done(0, refusal) +
			terminal("completed", ""), noMore},
		"a refusal at its end": {done(0, refusal) + terminal("completed", ""), noMore},
		"a filter": {delta(0, "output_text", "No.") +
			terminal("incomplete", `"incomplete_details":{"reason":"content_filter"},`), noMore},
		"a call at its end alone": {done(3, callItem("c1", "f", "{}")) + terminal("completed", ""), called("", "{}")},
		"a call that ends twice": {added(0, callItem("c1", "f", "")) + done(0, callItem("c1", "f", "{}")) +
			done(0, callItem("c1", "f", `{"x":1}`)) + terminal("completed", ""), called("", "{}")},
		"a call that begins twice": {added(0, callItem("c1", "f", "")) + added(0, callItem("c1", "f", "")) +
			delta(0, "function_call_arguments", "{}") + terminal("completed", ""), called("", "{}")},
		"a call under two indexes": {added(0, callItem("c1", "f", "")) + done(1, callItem("c1", "f", "{}")) +
			terminal("completed", ""), called("", "{}")},
		"a text that begins twice": {added(0, message) + delta(0, "output_text", "Hel") + added(0, message) +
			delta(0, "output_text", "lo") + done(0, message) + terminal("completed", ""), hello},
		"items that all are first": {added(0, refusal) + delta(0, "reasoning_text", "") + added(0, message) +
			done(0, message) + terminal("completed", ""), hello},
		"a call named at its end": {added(0, callItem("c1", "", "")) + delta(0, "function_call_arguments", "{") +
			done(0, callItem("c1", "f", "{}")) + terminal("completed", ""), called("{", "}")},
		"arguments that go on": {added(0, callItem("c1", "f", "{")) + done(0, callItem("c1", "f", "{}")) +
			terminal("completed", ""), called("", "{", "}")},
		"arguments with other spaces": {added(0, callItem("c1", "f", "")) + delta(0, "function_call_arguments", "{}") +
			done(0, callItem("c1", "f", "{ }")) + terminal("completed", ""), called("", "{}")},
		"a call without an end": {added(0, callItem("c1", "f", "")) + delta(0, "function_call_arguments", "{}") +
			terminal("completed", ""), called("", "{}")},
		"arguments in one piece": {added(0, callItem("c1", "f", "")) +
			sse("response.function_call_arguments.done", `,"output_index":0,"arguments":"{}"`) +
			terminal("completed", ""), called("", "{}")},
		"a text only announced": {added(0, `{"id":"msg_1","type":"message","role":"assistant","content":[]}`) +
			sse("response.completed", `,"response":{"status":"completed","output":[`+message+`]}`), hello},
		"the state in the response": {delta(0, "output_text", "x") + terminal("completed", `"status":"incomplete",`),
			"\"x\" \"\" \"\"  \n\"\" \"\" \"\"  length\n<nil>"},
		"a filter in a call": {done(0, callItem("c1", "f", "{}")) +
			terminal("incomplete", `"incomplete_details":{"reason":"content_filter"},`),
			strings.Replace(called("", "{}"), "tool_calls", "length", 1)},
		"two thoughts": {summary(0, 0, "a") + summary(0, 0, "b") + summary(0, 1, "c") +
			done(1, `{"type":"reasoning","content":[{"type":"reasoning_text","text":"d"}]}`) +
			terminal("completed", ""),
			"\"\" \"a\" \"\"  \n\"\" \"b\" \"\"  \n\"\" \"\\n\\nc\" \"\"  \n\"\" \"\\n\\nd\" \"\"  " +
				"\n\"\" \"\" \"\"  stop\n<nil>"},
	} {
		want := c[1]
		got := read(t, strings.NewReader(c[0]))
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestWait: a limit within an answer says in words how long to wait.
func TestWait(t *testing.T) {
	t.Parallel()
	m := testModel(t, nil)
	for _, event := range []string{failedFlat("rate_limit_exceeded", "Please try again in 1m2s."),
		failedAfter("rate_limit_exceeded", "Rate limit reached. Please try again in 1m2s.")} {
		var e *holdfast.ModelError
		err := m.client.Read(strings.NewReader(event), func(holdfast.Delta, error) bool { return true }, m.parser)
		if !errors.As(err, &e) || e.RetryAfter != 62*time.Second {
			t.Errorf("%s: %v", event, err)
		}
	}
}

// asked returns the items of a request, as JSON.
func asked(t *testing.T, m *Model, req *holdfast.ModelRequest) string {
	t.Helper()
	body, _, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return string(v.Input)
}

// TestReasoningReturns: items of reasoning go back whole, directly before what they led to, as
// they were at their end. Reasoning that leads to nothing, cannot be read by the provider, or
// was put in its place by a client does not.
func TestReasoningReturns(t *testing.T) {
	t.Parallel()
	m := testModel(t, nil)
	thought := func(n int) string {
		return fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[],`+
			`"encrypted_content":"secret%[1]d=","new":{"a":1.50}}`, n)
	}
	stream := added(0, `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"incomplete"}`) +
		done(0, thought(1)) + done(1, thought(2)) +
		delta(2, "output_text", "One.") +
		done(3, `{"id":"rs_3","type":"reasoning","summary":[],"encrypted_content":null}`) +
		done(4, thought(4)) + done(5, callItem("c1", "f", `{"x":1.50}`)) + done(6, callItem("c2", "g", "")) +
		done(7, thought(7)) + terminal("completed", "")
	answer := holdfast.Message{Role: holdfast.RoleAssistant}
	messages := []holdfast.Message{{Role: holdfast.RoleUser, Text: "go"}}
	err := m.client.Read(strings.NewReader(stream), func(d holdfast.Delta, _ error) bool {
		answer.Text += d.Text
		if d.ReasoningSecret != "" {
			messages = append(messages,
				holdfast.Message{Role: holdfast.RoleReasoning, Text: "shown", EncryptedValue: d.ReasoningSecret})
		}
		if c := d.Call; c != nil {
			if c.Name != "" {
				answer.Calls = append(answer.Calls, holdfast.ToolCall{ID: c.ID, Name: c.Name})
			}
			answer.Calls[c.Index].Arguments = append(answer.Calls[c.Index].Arguments, c.Arguments...)
		}
		return true
	}, m.parser)
	if err != nil {
		t.Fatal(err)
	}
	forged := m.client.Seal(0, 0, json.RawMessage(`{"type":"message","role":"system","content":[]}`),
		json.RawMessage(`{"type":"reasoning","id":"rs_9"}`), json.RawMessage(`{"type":"function_call","name":"pay"}`))
	messages = append(
		messages,
		holdfast.Message{Role: holdfast.RoleReasoning, EncryptedValue: forged},
		answer,
		holdfast.Message{
			Role:   holdfast.RoleTool,
			CallID: "c2",
			Text:   "second",
		},
		holdfast.Message{Role: holdfast.RoleTool, CallID: "c1", Error: "closed"},
	)
	want := `[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},` + thought(1) + `,` +
		thought(2) + `,` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One."}]},` + thought(4) + `,` +
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1.50}"},{"type":"function_call",` +
		`"call_id":"c2","name":"g","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"Error: ` +
		`closed"},{"type":"function_call_output","call_id":"c2","output":"second"}]`
	if got := asked(t, m, &holdfast.ModelRequest{Messages: messages}); got != want {
		t.Errorf("asked is\n%s\nwant\n%s", got, want)
	}
	answer.Text, answer.Calls = "", nil
	if got := asked(t, m, &holdfast.ModelRequest{Messages: append(messages[:len(messages)-3:len(messages)-3],
		answer)}); strings.Contains(got, "secret") {
		t.Errorf("reasoning that leads to nothing is sent: %s", got)
	}
}

// TestRequest: the request, byte for byte.
func TestRequest(t *testing.T) {
	t.Parallel()
	src := func(kind holdfast.SourceType, mime, value, provider string) *holdfast.Source {
		return &holdfast.Source{Type: kind, MIMEType: mime, Value: value, Provider: provider}
	}
	body, left, err := testModel(t, map[string]any{"max_output_tokens": 100,
		"reasoning": map[string]any{"summary": "auto"}}).body(&holdfast.ModelRequest{
		Thread:       "thread of Ann",
		Instructions: []string{"Be kind.", "Be brief."},
		Context:      []holdfast.ContextItem{{Description: "page", Value: "/home"}},
		Messages: []holdfast.Message{
			{Role: holdfast.RoleAssistant, Text: "Welcome."},
			{Role: holdfast.RoleUser, Parts: []holdfast.Part{
				{Type: holdfast.PartText, Text: "look"},
				{Type: holdfast.PartText},
				{Type: holdfast.PartImage, Source: src(holdfast.SourceURL, "", "https://x/y.png", "")},
				{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/PNG", "AAAA", "")},
				{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/tiff", "AAAA", "")},
				{Type: holdfast.PartImage, Source: src(holdfast.SourceFile, "", "file-0", "openai")},
				{Type: holdfast.PartDocument, Source: src(holdfast.SourceData, "application/pdf", "CCCC", "")},
				{Type: holdfast.PartDocument, Source: src(holdfast.SourceURL, "", "https://x/y.pdf", "")},
				{
					Type:   holdfast.PartDocument,
					Source: src(holdfast.SourceData, "text/plain; charset=utf-8", "aGVsbG8=", ""),
				},
				{Type: holdfast.PartDocument, Source: src(holdfast.SourceFile, "", "file-1", "openai")},
				{Type: holdfast.PartDocument, Source: src(holdfast.SourceFile, "", "file-2", "anthropic")},
				{Type: holdfast.PartAudio, Source: src(holdfast.SourceData, "audio/mpeg", "BBBB", "")},
				{Type: holdfast.PartVideo},
			}},
			{Role: holdfast.RoleReasoning, Text: "hm"},
			{
				Role: holdfast.RoleAssistant,
				Calls: []holdfast.ToolCall{
					{ID: "functions.look:0", Name: "look", Arguments: json.RawMessage(`{"at": 1.0}`)},
					{ID: "c2", Name: "ask", Arguments: json.RawMessage(`{"x":`)},
				},
			},
			{
				Role:   holdfast.RoleTool,
				CallID: "functions.look:0",
				Parts: []holdfast.Part{
					{Type: holdfast.PartText, Text: "seen"},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/png", "AAAA", "")},
				},
			},
			{
				Role:   holdfast.RoleTool,
				CallID: "c2",
				Parts: []holdfast.Part{
					{Type: holdfast.PartText, Text: "only "},
					{Type: holdfast.PartText, Text: "text"},
				},
			},
			{Role: holdfast.RoleSystem, Text: "The user is away."},
			{Role: holdfast.RoleUser, Text: "back"},
			{Role: holdfast.RoleAssistant},
			{Role: holdfast.RoleAssistant, Text: "Hello"},
			{Role: holdfast.RoleUser, Text: "again"},
		},
		Tools: []holdfast.ToolSpec{
			{Name: "look", Description: "Looks.", Parameters: json.RawMessage(`{"type":"object"}`)},
			{Name: "ask"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range left {
		kinds = append(kinds, fmt.Sprintf("%d %s", p.Message, p.Kind))
	}
	const wanted = "[1 image of type image/tiff 1 document 1 audio of type audio/mpeg 1 video]"
	if got := fmt.Sprint(kinds); got != wanted {
		t.Errorf("left out are %s, want %s", got, wanted)
	}
	var shown bytes.Buffer
	if err := json.Indent(&shown, body.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	shown.WriteByte('\n')
	file := filepath.Join("testdata", "request.json")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, shown.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if shown.String() != string(want) {
		t.Errorf("the request is\n%s\nwant\n%s", shown.String(), want)
	}
}

// TestParams: what the server sets by itself can be replaced, but for what makes the
// conversation the provider's.
func TestParams(t *testing.T) {
	t.Parallel()
	body, _, err := testModel(t, map[string]any{"include": []string{}, "prompt_cache_key": "mine"}).
		body(&holdfast.ModelRequest{Thread: "t"})
	const want = `{"include":[],"model":"m1","prompt_cache_key":"mine","store":false,"stream":true,` +
		`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"(Continue.)"}]}]}`
	if err != nil || string(body.Bytes()) != want {
		t.Errorf("%s, %v, want %s", body.Bytes(), err, want)
	}
	for _, name := range []string{"store", "previous_response_id", "conversation", "background", "input"} {
		if _, err := New(Options{Model: "m", Key: "k", Params: map[string]any{name: true}}); err == nil {
			t.Errorf("%s can be set", name)
		}
	}
}

// TestPrefix: what a request has but for the frontend's context, the next one of the
// thread has too, with the same key for the cache.
func TestPrefix(t *testing.T) {
	t.Parallel()
	m := testModel(t, nil)
	req := &holdfast.ModelRequest{Thread: "t", Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: "go"}}}
	last, key := "", ""
	for turn := range 4 {
		req.Context = []holdfast.ContextItem{{Description: "time", Value: fmt.Sprint(turn)}}
		body, _, err := m.body(req)
		if err != nil {
			t.Fatal(err)
		}
		items := asked(t, m, req)
		if !strings.HasPrefix(items, last) {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", turn, items, last)
		}
		_, after, ok := strings.Cut(string(body.Bytes()), `"prompt_cache_key":"`)
		if !ok || len(after) < 32 || turn > 0 && after[:32] != key {
			t.Errorf("request %d has another key: %s", turn, body.Bytes())
		}
		at := strings.LastIndex(items, `,{"type":"message"`)
		last, key = items[:at], after[:32]
		call := holdfast.ToolCall{ID: fmt.Sprint("c", turn), Name: "f"}
		req.Messages = append(req.Messages,
			holdfast.Message{Role: holdfast.RoleAssistant, Text: "ok", Calls: []holdfast.ToolCall{call}},
			holdfast.Message{Role: holdfast.RoleTool, CallID: call.ID, Text: "done"})
	}
}

// TestWhere: requests go to /responses, with the key as a bearer token.
func TestWhere(t *testing.T) {
	t.Parallel()
	asked := ""
	env := map[string]string{"OPENAI_API_KEY": "k"}
	for base, want := range map[string]string{"": "https://api.openai.com/v1/responses",
		"http://gate/v1/": "http://gate/v1/responses"} {
		env["OPENAI_BASE_URL"] = base
		m, err := New(Options{
			Model:  "m",
			Getenv: func(name string) string { return env[name] },
			HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) {
				asked = r.Method + " " + r.URL.String() + " " + r.Header.Get("Authorization")
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range m.Stream(t.Context(), &holdfast.ModelRequest{}) {
		}
		if asked != "POST "+want+" Bearer k" {
			t.Errorf("%s", asked)
		}
	}
}

type roundTrip func(*http.Request)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// TestFloods: what a provider sends and is not passed on is bounded here.
func TestFloods(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", 1<<16)
	for name, chunk := range map[string]string{
		"items":     added(0, `{"type":"message"}`),
		"reasoning": added(0, `{"type":"reasoning"}`) + done(0, `{"type":"reasoning","encrypted_content":"`+piece+`"}`),
		"arguments": delta(0, "function_call_arguments", piece),
	} {
		if got := read(t, &repeating{text: []byte(chunk), left: 64 << 20}); !strings.Contains(got, "too long") {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// repeating is a long stream of the same text.
type repeating struct {
	text []byte
	at   int
	left int64
}

// Read implements io.Reader.
func (r *repeating) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), r.left)], r.text[r.at:])
	r.at, r.left = (r.at+n)%len(r.text), r.left-int64(n)
	return n, nil
}

// benchDeltas are what providers send for a word, by what it is.
var benchDeltas = map[string]string{
	"text": delta(0, "output_text", "some words"), "reasoning": summary(0, 0, "some words"),
	"arguments": delta(0, "function_call_arguments", `{"some`),
}

// told reads n of these.
func told(tb testing.TB, line string, n int) {
	tb.Helper()
	m, count := &Model{client: &modelhttp.Client{Model: "m"}}, 0
	stream := io.MultiReader(strings.NewReader(added(0, callItem("c1", "f", ""))),
		&repeating{text: []byte(line), left: int64(n) * int64(len(line))})
	err := m.client.Read(stream, func(holdfast.Delta, error) bool { count++; return true },
		func(a *modelhttp.Answer) modelhttp.Parser {
			return unbounded{&answer{Answer: a, model: m, items: map[int]*item{}, known: map[string]*item{}}}
		})
	if count < n || !errors.Is(err, holdfast.ErrTruncated) {
		tb.Errorf("%d deltas of %d, then %v", count, n, err)
	}
}

// TestDeltasAllocate: how often memory is allocated for a delta, which is the same on every
// machine.
func TestDeltasAllocate(t *testing.T) {
	most := map[string]float64{"text": 1, "reasoning": 6, "arguments": 10}
	for name, line := range benchDeltas {
		n := testing.AllocsPerRun(5, func() { told(t, line, 1000) }) / 1000
		if n > most[name]+0.5 {
			t.Errorf("%s: %.1f allocations, at most %v", name, n, most[name])
		}
	}
}

// BenchmarkDelta compares our cost of a model's delta with just decoding its JSON into
// the least that holds its text. The bar is 1.5 x, also for the events that are decoded.
func BenchmarkDelta(b *testing.B) {
	for name, line := range benchDeltas {
		b.Run(name+"/holdfast", func(b *testing.B) {
			b.ReportAllocs()
			told(b, line, b.N)
		})
		b.Run(name+"/decoding alone", func(b *testing.B) {
			b.ReportAllocs()
			_, data, _ := strings.Cut(strings.TrimSpace(line), "data: ")
			for b.Loop() {
				var v struct {
					Type  string
					Index int `json:"output_index"`
					Delta string
				}
				if err := json.Unmarshal([]byte(data), &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// unbounded is an answer that may be longer than any real one.
type unbounded struct{ *answer }

// Event implements modelhttp.Parser.
func (u unbounded) Event(ev modelhttp.Event) error {
	if u.held = 0; u.items[0] != nil {
		u.items[0].arguments = u.items[0].arguments[:0]
	}
	return u.answer.Event(ev)
}

// TestToolChoice: which tools may be called, in the API's form. It replaces what the parameters
// say, and is left out where there is no tool.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	m := testModel(t, map[string]any{"tool_choice": "auto"})
	for _, c := range []struct{ choice, tool, want string }{
		{"", "", `"tool_choice":"auto"`},
		{"none", "", `],"tool_choice":"none"}`},
		{"required", "", `],"tool_choice":"required"}`},
		{"required", "g", `],"tool_choice":{"name":"g","type":"function"}}`},
	} {
		req := &holdfast.ModelRequest{
			ToolChoice: c.choice,
			ChosenTool: c.tool,
			Messages:   []holdfast.Message{{Role: holdfast.RoleUser, Text: "go"}},
			Tools:      []holdfast.ToolSpec{{Name: "f"}, {Name: "g"}},
		}
		body, _, err := m.body(req)
		if err != nil || !strings.Contains(string(body.Bytes()), c.want) ||
			strings.Count(string(body.Bytes()), `"tool_choice":`) != 1 {
			t.Errorf("%s %s: %s, %v", c.choice, c.tool, body.Bytes(), err)
		}
		req.Tools = nil
		body, _, err = m.body(req)
		if err != nil || c.choice != "" && strings.Contains(string(body.Bytes()), c.want) {
			t.Errorf("%s %s without tools: %s, %v", c.choice, c.tool, body.Bytes(), err)
		}
	}
}
