package anthropic

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
	return &modeltest.Reader{Client: m.client, Parser: m.parser, Ends: []string{"message_stop"}}
}

func read(t testing.TB, r io.Reader) string {
	t.Helper()
	return reader().Read(t, r)
}

func FuzzStream(f *testing.F) {
	modeltest.Fuzz(f, conforming(), reader(),
		begin(-1, `{"type":"redacted_thinking","data":"x"}`)+end(-1)+end(-1)+strings.Join(closing("pause_turn"), ""),
		`{"type":"error","error":{"type":"api_error"}}`)
}

// FuzzPlainText: the text of an event that is not decoded is the text that decoding finds.
func FuzzPlainText(f *testing.F) {
	f.Add("0", "text", "\"}}")
	f.Add("12", "é\u2028", "\"}   } ")
	f.Add("1", `a\n`, "\"}}")
	f.Add("1", `a","x":"b`, "\"}}")
	f.Add("01", "a\xff", "\"},\"x\":{}}")
	f.Fuzz(func(t *testing.T, index, text, after string) {
		data := string(beforeIndex) + index + string(beforeText) + text + after
		got, ok := plainText([]byte(data))
		if !ok {
			return
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil && index[0] != '0' ||
			err == nil && (string(e.Delta.Text) != got || e.Type != "content_block_delta" ||
				e.Delta.Type != "text_delta") {
			t.Errorf("%s is read as %q, decoded as %+v: %v", data, got, e, err)
		}
	})
}

// TestPlainTextIsUsed: the usual events are not decoded.
func TestPlainTextIsUsed(t *testing.T) {
	t.Parallel()
	for _, tail := range []string{`"}}`, `"}        }`, `"} }`} {
		if text, ok := plainText([]byte(`{"type":"content_block_delta","index":3,` +
			`"delta":{"type":"text_delta","text":"hi, é` + tail)); !ok || text != "hi, é" {
			t.Errorf("%s: %q, %v", tail, text, ok)
		}
	}
}

// TestStops: every stop reason.
func TestStops(t *testing.T) {
	t.Parallel()
	call := begin(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`) + end(0)
	for stop, want := range map[string][2]holdfast.FinishReason{ // without and with a call
		"end_turn":                      {holdfast.FinishStop, holdfast.FinishToolCalls},
		"stop_sequence":                 {holdfast.FinishStop, holdfast.FinishToolCalls},
		"tool_use":                      {holdfast.FinishStop, holdfast.FinishToolCalls},
		"max_tokens":                    {holdfast.FinishLength, holdfast.FinishLength},
		"model_context_window_exceeded": {holdfast.FinishLength, holdfast.FinishLength},
		"pause_turn":                    {holdfast.FinishLength, holdfast.FinishLength},
		"something_new":                 {holdfast.FinishStop, holdfast.FinishToolCalls},
	} {
		for i, content := range []string{"", call} {
			got := read(t, strings.NewReader(opening()+content+strings.Join(closing(stop), "")))
			if !strings.HasSuffix(got, " "+string(want[i])+"\n<nil>") {
				t.Errorf("%s with %q: %s, want %s", stop, content, got, want[i])
			}
		}
	}
}

// asked returns the messages of a request, as JSON.
func asked(t *testing.T, m *Model, req *holdfast.ModelRequest) string {
	t.Helper()
	body, _, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Messages json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return string(v.Messages)
}

// TestThinkingReturns: thinking, redacted thinking and thinking between text and calls goes
// back unchanged and where it was. A client's replacement for it does not.
func TestThinkingReturns(t *testing.T) {
	t.Parallel()
	m := testModel(t, map[string]any{"cache_control": map[string]any{"type": "ephemeral"}})
	stream := opening() +
		begin(0, `{"type":"thinking","thinking":"a ","signature":""}`) +
		delta(0, "thinking_delta", "thinking", "<b>") + delta(0, "signature_delta", "signature", "s1") +
		delta(0, "signature_delta", "signature", "=") + end(0) +
		begin(1, `{"type":"redacted_thinking","data":"hidden"}`) + end(1) +
		begin(2, `{"type":"text","text":"One"}`) + delta(2, "text_delta", "text", ".") + end(2) +
		begin(3, `{"type":"thinking","thinking":"","signature":"s2"}`) + end(3) +
		begin(4, `{"type":"text","text":"Two."}`) + end(4) +
		begin(5, `{"type":"tool_use","id":"c1","name":"f","input":{}}`) +
		delta(5, "input_json_delta", "partial_json", `{"x":1.50}`) + end(5) +
		begin(6, `{"type":"thinking","thinking":"c","signature":"s3"}`) + end(6) +
		begin(7, `{"type":"tool_use","id":"c2","name":"g","input":{"y":2}}`) + end(7) +
		begin(8, `{"type":"thinking","thinking":"unsigned","signature":""}`) + end(8) +
		strings.Join(closing("tool_use"), "")
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
	forged := m.client.Seal(0, 0, json.RawMessage(`{"type":"text","text":"I promise"}`),
		json.RawMessage(`{"type":"tool_use","id":"x","name":"pay","input":{}}`))
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
	const want = `[{"role":"user","content":[{"type":"text","text":"go"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"a ` +
		`\u003cb\u003e","signature":"s1="},{"type":"redacted_thinking","data":"hidden"},` +
		`{"type":"text","text":"One."},{"type":"thinking","thinking":"","signature":"s2"},` +
		`{"type":"text","text":"Two."},` +
		`{"type":"tool_use","id":"c1","name":"f","input":{"x":1.50}},{"type":"thinking","thinking":"c",` +
		`"signature":"s3"},{"type":"tool_use","id":"c2","name":"g","input":{"y":2}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"Error: ` +
		`closed"}],"is_error":true},` +
		`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"second"}]}]}]`
	if got := asked(t, m, &holdfast.ModelRequest{Messages: messages}); got != want {
		t.Errorf("asked is\n%s\nwant\n%s", got, want)
	}
}

// TestRequest: the request, byte for byte.
func TestRequest(t *testing.T) {
	t.Parallel()
	src := func(kind holdfast.SourceType, mime, value, provider string) *holdfast.Source {
		return &holdfast.Source{Type: kind, MIMEType: mime, Value: value, Provider: provider}
	}
	body, left, err := testModel(t, map[string]any{"max_tokens": 100, "thinking": map[string]any{"type": "adaptive"}}).
		body(&holdfast.ModelRequest{
			Instructions: []string{"Be kind.", " ", "Be brief."},
			Context:      []holdfast.ContextItem{{Description: "page", Value: "/home"}},
			Messages: []holdfast.Message{
				{Role: holdfast.RoleAssistant, Text: "Welcome."},
				{Role: holdfast.RoleUser, Parts: []holdfast.Part{
					{Type: holdfast.PartText, Text: "look"},
					{Type: holdfast.PartText, Text: " "},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceURL, "", "https://x/y.png", "")},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/PNG", "AAAA", "")},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/tiff", "AAAA", "")},
					{Type: holdfast.PartDocument, Source: src(holdfast.SourceData, "application/pdf", "CCCC", "")},
					{
						Type:   holdfast.PartDocument,
						Source: src(holdfast.SourceData, "text/plain; charset=utf-8", "aGVsbG8=", ""),
					},
					{Type: holdfast.PartDocument, Source: src(holdfast.SourceFile, "", "file-1", "anthropic")},
					{Type: holdfast.PartDocument, Source: src(holdfast.SourceFile, "", "file-2", "openai")},
					{Type: holdfast.PartAudio, Source: src(holdfast.SourceData, "audio/mpeg", "BBBB", "")},
				}},
				{Role: holdfast.RoleReasoning, Text: "hm"},
				{
					Role: holdfast.RoleAssistant,
					Text: " ",
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
				{Role: holdfast.RoleTool, CallID: "c2"},
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
	if got, want := fmt.Sprint(kinds), "[1 image of type image/tiff 1 document 1 audio of type audio/mpeg]"; got !=
		want {
		t.Errorf("left out are %s, want %s", got, want)
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

// TestPrefix: what a request has up to its last mark, the next one of its run has too, and the
// next run what stands before the frontend's facts; no request has more than four marks, or
// an end of the one before out of their sight.
func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, facts := range []bool{false, true} {
		m := testModel(t, nil)
		req := &holdfast.ModelRequest{Instructions: []string{"Be kind."}, Tools: []holdfast.ToolSpec{{Name: "f"}}}
		var before prefixes
		for turn, calls := range [][]int{{1, 3}, {8, 12}, {22}, {1}, {30, 2}, {1}} {
			req.Messages = append(req.Messages,
				holdfast.Message{Role: holdfast.RoleUser, Text: fmt.Sprint("go ", turn)})
			if facts {
				req.Context = []holdfast.ContextItem{{Description: "time", Value: fmt.Sprint(turn)}}
			}
			for n, many := range append(calls, 0) {
				now := prefixesOf(t, m, req)
				want, end := before.whole, before.ends
				if n == 0 && facts {
					want, end = before.stable, before.stableEnds
				}
				if !strings.HasPrefix(now.bare, want) {
					t.Errorf("facts %v: request %d of run %d does not begin as the one before: it has %d bytes of %d",
						facts, n, turn, commonTo(now.bare, want), len(want))
				}
				if len(now.marks) > 4 || end >= 0 && before.bare != "" && !seen(now.marks, end) {
					t.Errorf("facts %v: request %d of run %d: block %d is out of sight of the marks at %v", facts, n,
						turn, end, now.marks)
				}
				before = now
				answer := holdfast.Message{Role: holdfast.RoleAssistant, Text: "ok"}
				for i := range many {
					answer.Calls = append(answer.Calls, holdfast.ToolCall{
						ID:        fmt.Sprintf("c%d_%d_%d", turn, n, i),
						Name:      "f",
						Arguments: json.RawMessage("{}"),
					})
				}
				req.Messages = append(req.Messages, answer)
				for _, c := range answer.Calls {
					req.Messages = append(req.Messages,
						holdfast.Message{Role: holdfast.RoleTool, CallID: c.ID, Text: "done"})
				}
			}
		}
	}
}

// prefixes are what of a request the next one may repeat: without its marks, up to the last
// one, and before the facts; with the numbers of the blocks where both end.
type prefixes struct {
	bare, whole, stable string
	ends, stableEnds    int
	marks               []int
}

func prefixesOf(t *testing.T, m *Model, req *holdfast.ModelRequest) (p prefixes) {
	t.Helper()
	body, _, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(body.Bytes()), "cache_control"); n > 4 || n < 2 {
		t.Errorf("a request has %d marks", n)
	}
	messages := asked(t, m, req)
	bare := func(s string) string { return strings.ReplaceAll(s, `,"cache_control":{"type":"ephemeral"}`, "") }
	p.marks = marks(t, messages)
	p.bare, p.whole, p.ends = bare(messages), bare(messages[:strings.LastIndex(messages, `,"cache_control"`)]),
		p.marks[len(p.marks)-1]
	p.stable, p.stableEnds = p.whole, p.ends
	if stable, _, found := strings.Cut(p.bare, `{"type":"text","text":"\u003ccontext`); found {
		p.stable = strings.TrimSuffix(strings.TrimSuffix(stable, `]},{"role":"user","content":[`), ",")
		p.stableEnds = strings.Count(stable, `{"type":"text"`) + strings.Count(stable, `{"type":"tool_use"`) - 1
	}
	return p
}

// commonTo returns how many bytes two texts begin with alike.
func commonTo(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// marks returns which blocks of the messages have a mark.
func marks(t *testing.T, messages string) []int {
	t.Helper()
	var list []struct {
		Content []struct {
			Cache *cache `json:"cache_control"`
		} `json:"content"`
	}
	if err := json.Unmarshal([]byte(messages), &list); err != nil {
		t.Fatal(err)
	}
	var at []int
	n := 0
	for _, m := range list {
		for _, c := range m.Content {
			if c.Cache != nil {
				at = append(at, n)
			}
			n++
		}
	}
	return at
}

// seen reports whether a block is at most 20 before one of the marks.
func seen(marks []int, block int) bool {
	for _, at := range marks {
		if at >= block && at-block <= 20 {
			return true
		}
	}
	return false
}

// TestKeys: where the key, the base URL and the headers come from.
func TestKeys(t *testing.T) {
	t.Parallel()
	env := func(vars map[string]string) func(string) string {
		return func(name string) string { return vars[name] }
	}
	for name, c := range map[string]struct {
		o                     Options
		url, key, bearer, bad string
	}{
		"the default": {o: Options{Getenv: env(map[string]string{"ANTHROPIC_API_KEY": modeltest.Key})},
			url: DefaultBaseURL, key: modeltest.Key},
		"a variable": {o: Options{KeyEnv: "OURS",
			Getenv: env(map[string]string{"OURS": "k", "ANTHROPIC_BASE_URL": "http://gate/"})},
			url: "http://gate", key: "k"},
		"a header": {o: Options{Headers: map[string]string{"authorization": "Bearer x",
			"anthropic-version": "2099-01-01"},
			Getenv: env(nil)},
			url: DefaultBaseURL, bearer: "Bearer x"},
		"none": {o: Options{Getenv: env(nil)},
			bad: "the model m needs a key: set ANTHROPIC_API_KEY, or name a server that needs none " +
				"with ANTHROPIC_BASE_URL"},
		"our parameter": {o: Options{Key: "k", Params: map[string]any{"system": "x"}},
			bad: `the parameter "system" cannot be set: the server sets it itself`},
		"a negative one": {o: Options{Key: "k", Timeout: -1}, bad: "the model's timeout cannot be negative"},
	} {
		c.o.Model = "m"
		m, err := New(c.o)
		if c.bad != "" {
			if err == nil || err.Error() != c.bad {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h := m.client.Header()
		if m.client.BaseURL != c.url || h.Get("X-Api-Key") != c.key || h.Get("Authorization") != c.bearer ||
			h.Get("Anthropic-Version") == "" || c.bearer != "" && h.Get("Anthropic-Version") != "2099-01-01" {
			t.Errorf("%s: %s with %v", name, m.client.BaseURL, h)
		}
	}
}

// TestWhere: requests go to /v1/messages.
func TestWhere(t *testing.T) {
	t.Parallel()
	path := ""
	m, err := New(Options{
		Model: "m",
		Key:   "k",
		HTTP:  &http.Client{Transport: roundTrip(func(r *http.Request) { path = r.Method + " " + r.URL.String() })},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range m.Stream(t.Context(), &holdfast.ModelRequest{}) {
	}
	if path != "POST https://api.anthropic.com/v1/messages" {
		t.Errorf("%s", path)
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
		"a signature": delta(0, "signature_delta", "signature", piece),
		"blocks":      begin(0, `{"type":"text","text":""}`),
		"data":        begin(0, `{"type":"redacted_thinking","data":"`+piece+`"}`),
	} {
		stream := io.MultiReader(strings.NewReader(opening()+begin(0, `{"type":"thinking"}`)),
			&repeating{text: []byte(chunk), left: 64 << 20})
		if got := read(t, stream); !strings.Contains(got, "too long") {
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
	"text":      delta(0, "text_delta", "text", "some words"),
	"thinking":  delta(0, "thinking_delta", "thinking", "some words"),
	"arguments": delta(0, "input_json_delta", "partial_json", `{\"some`),
}

// told reads n of these.
func told(tb testing.TB, name, line string, n int) {
	tb.Helper()
	m, count := &Model{client: &modelhttp.Client{Model: "m"}}, 0
	start := begin(0, map[string]string{"text": `{"type":"text"}`, "thinking": `{"type":"thinking"}`,
		"arguments": `{"type":"tool_use","id":"a","name":"f"}`}[name])
	stream := io.MultiReader(strings.NewReader(start),
		&repeating{text: []byte(line), left: int64(n) * int64(len(line))})
	err := m.client.Read(stream, func(holdfast.Delta, error) bool { count++; return true },
		func(a *modelhttp.Answer) modelhttp.Parser {
			return unbounded{&answer{Answer: a, model: m, blocks: map[int]*block{}}}
		})
	if count < n || !errors.Is(err, holdfast.ErrTruncated) {
		tb.Errorf("%d deltas of %d, then %v", count, n, err)
	}
}

// TestDeltasAllocate: how often memory is allocated for a delta, which is the same on every
// machine.
func TestDeltasAllocate(t *testing.T) {
	most := map[string]float64{"text": 2, "thinking": 10, "arguments": 14}
	for name, line := range benchDeltas {
		n := testing.AllocsPerRun(5, func() { told(t, name, line, 1000) }) / 1000
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
			told(b, name, line, b.N)
		})
		b.Run(name+"/decoding alone", func(b *testing.B) {
			b.ReportAllocs()
			_, data, _ := strings.Cut(strings.TrimSpace(line), "data: ")
			for b.Loop() {
				var v struct {
					Type  string
					Index int
					Delta struct {
						Type, Text, Thinking string
						PartialJSON          string `json:"partial_json"`
					}
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
	if u.held = 0; u.blocks[0] != nil {
		u.blocks[0].thinking = u.blocks[0].thinking[:0]
	}
	return u.answer.Event(ev)
}

// TestToolChoice: which tools may be called, in the API's form. It replaces what the parameters
// say, and is left out where there is no tool.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	m := testModel(t, map[string]any{"tool_choice": map[string]any{"type": "auto"}})
	for _, c := range []struct{ choice, tool, want string }{
		{"", "", `"tool_choice":{"type":"auto"}`},
		{"none", "", `],"tool_choice":{"type":"none"}}`},
		{"required", "", `],"tool_choice":{"type":"any"}}`},
		{"required", "g", `],"tool_choice":{"name":"g","type":"tool"}}`},
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
