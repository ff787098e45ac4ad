package gemini

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

func testModel(t testing.TB, name string, params map[string]any) *Model {
	t.Helper()
	m, err := New(Options{Model: name, Key: modeltest.Key, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func reader(t testing.TB) *modeltest.Reader {
	m := &Model{client: &modelhttp.Client{Provider: provider, Model: "m1"}}
	return &modeltest.Reader{Client: m.client, Ends: []string{"finishreason"}, Parser: m.parser(0)}
}

func read(t testing.TB, r io.Reader) string {
	t.Helper()
	return reader(t).Read(t, r)
}

func FuzzStream(f *testing.F) {
	modeltest.Fuzz(f, conforming(false), reader(f),
		chunk(signedText("é", "s"), `{"inlineData": {"mimeType": "image/png","data": "AAAA"}}`)+finish("SAFETY"),
		sse(`"promptFeedback": {"blockReason": "SAFETY"}`), `[{"error":{"code":500}}]`)
}

// TestFinishes: every finish reason, without and with a call.
func TestFinishes(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string][2]holdfast.FinishReason{
		"STOP":               {holdfast.FinishStop, holdfast.FinishToolCalls},
		"MAX_TOKENS":         {holdfast.FinishLength, holdfast.FinishLength},
		"SAFETY":             {holdfast.FinishFilter, holdfast.FinishFilter},
		"RECITATION":         {holdfast.FinishFilter, holdfast.FinishFilter},
		"LANGUAGE":           {holdfast.FinishFilter, holdfast.FinishFilter},
		"BLOCKLIST":          {holdfast.FinishFilter, holdfast.FinishFilter},
		"PROHIBITED_CONTENT": {holdfast.FinishFilter, holdfast.FinishFilter},
		"SPII":               {holdfast.FinishFilter, holdfast.FinishFilter},
		"IMAGE_SAFETY":       {holdfast.FinishFilter, holdfast.FinishFilter},
		"SOMETHING_NEW":      {holdfast.FinishStop, holdfast.FinishToolCalls},
	} {
		for i, content := range []string{"", chunk(callPart("a", "f", "{}", ""))} {
			got := read(t, strings.NewReader(strings.ReplaceAll(content+finish(reason), "\n", "\r\n")))
			if !strings.HasSuffix(got, " "+string(want[i])+"\n<nil>") {
				t.Errorf("%s with %q: %s, want %s", reason, content, got, want[i])
			}
		}
	}
}

// failureOf asks a model whose provider answers with a status and a body.
func failureOf(t *testing.T, status int, body string, attempt int) *holdfast.ModelError {
	t.Helper()
	m, err := New(Options{Model: "m", Key: "k",
		HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
			return &http.Response{
				StatusCode: status,
				Header:     http.Header{},
				Body:       io.NopCloser(strings.NewReader(body)),
				Request:    r,
			}
		})}})
	if err != nil {
		t.Fatal(err)
	}
	var e *holdfast.ModelError
	for _, err := range m.Stream(t.Context(), &holdfast.ModelRequest{Attempt: attempt}) {
		if err != nil && !errors.As(err, &e) {
			t.Errorf("the error is %v", err)
		}
	}
	if e == nil {
		t.Fatalf("%s is taken for an answer", body)
	}
	return e
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestMalformedOnce: an answer that the provider cannot use itself is tried again once.
func TestMalformedOnce(t *testing.T) {
	t.Parallel()
	for attempt, want := range []bool{true, false, false} {
		for _, stream := range []string{finish("MALFORMED_FUNCTION_CALL"), finish("OTHER"),
			chunk(callPart("", "", "{}", ""))} {
			if e := failureOf(t, http.StatusOK, stream, attempt); e.Retryable != want {
				t.Errorf("%s at attempt %d: %v", stream, attempt, e)
			}
		}
	}
}

// TestWaits: how long to wait is in the body, also within an answer.
func TestWaits(t *testing.T) {
	t.Parallel()
	const details = `{"@type": "type.googleapis.com/google.rpc.RetryInfo","retryDelay": "22s"}`
	stream := failed(429, "RESOURCE_EXHAUSTED", "slow", details)
	body := "[" + strings.TrimSuffix(strings.TrimPrefix(stream, "data: "), "\n\n") + "]"
	for _, e := range []*holdfast.ModelError{failureOf(t, 429, body, 0),
		failureOf(t, 200, chunk(text("so"))+stream, 0)} {
		if e.RetryAfter != 22*time.Second || e.Status != 429 {
			t.Errorf("wait %v after %v", e.RetryAfter, e)
		}
	}
}

// asked returns the contents of a request, as JSON.
func asked(t *testing.T, m *Model, req *holdfast.ModelRequest) string {
	t.Helper()
	body, _, err := m.body(req)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Contents json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return string(v.Contents)
}

// heard reads an answer into the messages that the server makes of it.
func heard(t *testing.T, m *Model, stream string) []holdfast.Message {
	t.Helper()
	var before []holdfast.Message
	answer := holdfast.Message{Role: holdfast.RoleAssistant}
	open := false // a reasoning message lasts until there is something else
	err := m.client.Read(strings.NewReader(stream), func(d holdfast.Delta, _ error) bool {
		answer.Text += d.Text
		if d.Reasoning+d.ReasoningSecret != "" {
			if !open {
				before = append(before, holdfast.Message{Role: holdfast.RoleReasoning})
			}
			open = true
			before[len(before)-1].Text += d.Reasoning
			before[len(before)-1].EncryptedValue += d.ReasoningSecret
		}
		open = open && d.Text == "" && d.Call == nil
		if c := d.Call; c != nil {
			answer.Calls = append(answer.Calls, holdfast.ToolCall{
				ID:             fmt.Sprintf("c%d", c.Index),
				Name:           c.Name,
				Arguments:      json.RawMessage(c.Arguments),
				EncryptedValue: c.EncryptedValue,
			})
		}
		return true
	}, m.parser(0))
	if err != nil {
		t.Fatal(err)
	}
	messages := append(before, answer)
	for _, c := range answer.Calls {
		messages = append(messages, holdfast.Message{Role: holdfast.RoleTool, CallID: c.ID, Text: "done"})
	}
	return messages
}

// TestSignaturesReturn: signatures go back on the parts that they came with, and to no
// other model, which gets the stand-in for calls.
func TestSignaturesReturn(t *testing.T) {
	t.Parallel()
	const results = `{"role":"user","parts":[{"functionResponse":{"id":"c0","name":"f","response":{"output":"done"}}}` +
		`,{"functionResponse":{"id":"c1","name":"g","response":{"output":"done"}}}]}`
	const oneResult = `{"role":"user","parts":[{"functionResponse":{"id":"c0","name":"f",` +
		`"response":{"output":"done"}}}]}`
	for name, c := range map[string]struct{ stream, own, other string }{
		"parallel calls": {
			chunk(thought("hm")) + chunk(text("I ")) + chunk(signedText("léok", "s1=")) +
				chunk(text("."), callPart("x", "f", `{"b": 1.50}`, "s2="), callPart("", "g", "{}", "")) +
				finish("STOP"),
			`{"role":"model","parts":[{"text":"I ` +
				`"},{"text":"léok","thoughtSignature":"s1="},{"text":"."},{"functionCall":{"id":"c0","name":"f",` +
				`"args":{"b":1.50}},"thoughtSignature":"s2="},{"functionCall":{"id":"c1","name":"g","args":{}}}]},` +
				results,
			`{"role":"model","parts":[{"text":"I ` +
				`léok."},{"functionCall":{"id":"c0","name":"f","args":{"b":1.50}},"thoughtSignature":"` +
				standIn +
				`"},{"functionCall":{"id":"c1","name":"g","args":{}}}]},` +
				results,
		},
		"an unsigned call": {
			chunk(callPart("", "f", "null", "")) + finish("STOP"),
			`{"role":"model","parts":[{"functionCall":{"id":"c0","name":"f","args":{}}}]},` + oneResult,
			`{"role":"model","parts":[{"functionCall":{"id":"c0","name":"f","args":{}},"thoughtSignature":"` +
				standIn + `"}]},` + oneResult,
		},
		"thoughts and text in a row": {
			chunk(`{"text": "hm","thought": true,"thoughtSignature": "s4="}`, thought("so")) +
				chunk(signedText("Hello", "s5="), text(", you")) +
				finish("MAX_TOKENS", signedText("", "s6="), signedText("", "s7=")),
			`{"role":"model","parts":[{"text":"","thought":true,"thoughtSignature":"s4="},{"text":"Hello",` +
				`"thoughtSignature":"s5="},{"text":", ` +
				`you"},{"text":"","thoughtSignature":"s6="},{"text":"","thoughtSignature":"s7="}]},{"role":"user",` +
				`"parts":[{"text":"(Continue.)"}]}`,
			`{"role":"model","parts":[{"text":"Hello, you"}]},{"role":"user","parts":[{"text":"(Continue.)"}]}`,
		},
		"at the end of a text": {
			chunk(text("Hello")) + finish("STOP", signedText("", "s3=")),
			`{"role":"model","parts":[{"text":"Hello"},{"text":"","thoughtSignature":"s3="}]},{"role":"user",` +
				`"parts":[{"text":"(Continue.)"}]}`,
			`{"role":"model","parts":[{"text":"Hello"}]},{"role":"user","parts":[{"text":"(Continue.)"}]}`,
		},
	} {
		m := testModel(t, "m1", nil)
		messages := append([]holdfast.Message{{Role: holdfast.RoleUser, Text: "go"}}, heard(t, m, c.stream)...)
		if n := len(messages); messages[n-1].Role ==
			holdfast.RoleAssistant { // its last secret comes after the text began
			messages[n-2], messages[n-1] = messages[n-1], messages[n-2]
		}
		for model, want := range map[string]string{"m1": c.own, "m2": c.other} {
			if got := asked(t, testModel(t, model, nil),
				&holdfast.ModelRequest{Messages: messages}); got != `[{"role":"user","parts":[{"text":"go"}]},`+want+
				"]" {
				t.Errorf("%s for %s is\n%s\nwant\n%s", name, model, got, want)
			}
		}
	}
}

// TestChangedText: a text that a middleware has changed is never cut within a character for
// its signature.
func TestChangedText(t *testing.T) {
	t.Parallel()
	m := testModel(t, "m1", nil)
	messages := heard(t, m, chunk(signedText("secret", "s="))+finish("STOP"))
	for text, signature := range map[string]bool{"sec": false, "sécret": true, "abcdeé": false, "secret": true} {
		messages[1].Text = text
		got := asked(t, m, &holdfast.ModelRequest{Messages: messages})
		if strings.Contains(got, "s=") != signature || !json.Valid([]byte(got)) {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// TestImages: the model's images come as parts, and go back to it where they were, with
// their signatures. Sketches among its thoughts are none, and another model reads that there
// was one.
func TestImages(t *testing.T) {
	t.Parallel()
	m := testModel(t, "m1", nil)
	image := func(data, signature string) string {
		return `{"inlineData": {"mimeType": "image/png","data": "` + data + `"},"thoughtSignature": "` + signature +
			`"}`
	}
	sketch := `{"thought": true, "inlineData": {"mimeType": "image/png","data": "BBBB"}}`
	answer, reasoning := holdfast.Message{ID: "a", Role: holdfast.RoleAssistant}, []holdfast.Message{}
	text2 := ""
	err := m.client.Read(
		strings.NewReader(chunk(sketch, text("Here: "), image("AAAA", "c2lnMQ=="))+
			chunk(signedText("and ", "c2lnMg=="), image("CCCC", "c2lnMw=="))+finish("STOP")),
		func(d holdfast.Delta, _ error) bool {
			if d.Text != "" {
				answer.Parts = append(answer.Parts, holdfast.Part{Type: holdfast.PartText, Text: d.Text})
				text2 += d.Text
			}
			if d.Media != nil {
				answer.Parts = append(answer.Parts, *d.Media)
			}
			if d.ReasoningSecret != "" {
				reasoning = append(reasoning,
					holdfast.Message{ID: "r", Role: holdfast.RoleReasoning, EncryptedValue: d.ReasoningSecret})
			}
			return true
		},
		m.parser(0),
	)
	if err != nil || len(answer.Parts) != 4 || answer.Parts[1].Type != holdfast.PartImage ||
		answer.Parts[1].Source.MIMEType != "image/png" {
		t.Fatalf("%+v, %v", answer.Parts, err)
	}
	req := &holdfast.ModelRequest{
		Messages: append([]holdfast.Message{{ID: "u", Role: holdfast.RoleUser, Text: "paint"}, answer}, reasoning...),
	}
	body, _, err := m.body(req)
	want := `{"role":"model","parts":[{"text":"Here: ` +
		`"},{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"c2lnMQ=="},` +
		`{"text":"and ","thoughtSignature":"c2lnMg=="},{"inlineData":{"mimeType":"image/png","data":"CCCC"},` +
		`"thoughtSignature":"c2lnMw=="}]}`
	if err != nil || !strings.Contains(string(body.Bytes()), want) {
		t.Errorf("%s, %v", body.Bytes(), err)
	}
	body, left, err := testModel(t, "m2", nil).body(req)
	if err != nil || len(left) > 0 || strings.Contains(string(body.Bytes()), "AAAA") ||
		!strings.Contains(string(body.Bytes()), "image of type image/png") {
		t.Errorf("another model: %s, %v, %v", body.Bytes(), left, err)
	}
}

// TestRequest: the request, byte for byte.
func TestRequest(t *testing.T) {
	t.Parallel()
	src := func(kind holdfast.SourceType, mime, value, provider string) *holdfast.Source {
		return &holdfast.Source{Type: kind, MIMEType: mime, Value: value, Provider: provider}
	}
	body, left, err := testModel(t, "gemini-3-pro",
		map[string]any{"generationConfig": map[string]any{"thinkingConfig": map[string]any{"includeThoughts": true}}}).
		body(&holdfast.ModelRequest{
			Instructions: []string{"Be kind.", "", "Be brief."},
			Context:      []holdfast.ContextItem{{Description: "page", Value: "/home"}},
			Messages: []holdfast.Message{
				{Role: holdfast.RoleAssistant, Text: "Welcome."},
				{Role: holdfast.RoleUser, Parts: []holdfast.Part{
					{Type: holdfast.PartText, Text: "look"},
					{Type: holdfast.PartText},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceURL, "", "https://x/y.png", "")},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceURL, "image/png", "http://x/y.png", "")},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/PNG", "AAAA", "")},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/tiff", "AAAA", "")},
					{Type: holdfast.PartDocument, Source: src(holdfast.SourceData, "application/pdf", "CCCC", "")},
					{
						Type:   holdfast.PartDocument,
						Source: src(holdfast.SourceData, "text/csv; charset=utf-8", "aGVsbG8=", ""),
					},
					{Type: holdfast.PartVideo, Source: src(holdfast.SourceFile, "video/mp4", "files/1", "gemini")},
					{Type: holdfast.PartDocument, Source: src(holdfast.SourceFile, "", "file-2", "openai")},
					{Type: holdfast.PartAudio, Source: src(holdfast.SourceData, "audio/mpeg", "BBBB", "")},
				}},
				{Role: holdfast.RoleReasoning, Text: "hm"},
				{
					Role: holdfast.RoleAssistant,
					Calls: []holdfast.ToolCall{
						{ID: "functions.look:0", Name: "look", Arguments: json.RawMessage(`{"at": 1.0}`)},
						{ID: "c2", Name: "ask", Arguments: json.RawMessage(`{"x":`)},
						{ID: "c3", Name: "ask"},
					},
				},
				{Role: holdfast.RoleTool, CallID: "c2", Error: "closed"},
				{Role: holdfast.RoleTool, CallID: "functions.look:0", Parts: []holdfast.Part{
					{
						Type: holdfast.PartText,
						Text: "seen",
					},
					{Type: holdfast.PartImage, Source: src(holdfast.SourceData, "image/png", "AAAA", "")},
					{Type: holdfast.PartAudio, Source: src(holdfast.SourceData, "audio/mpeg", "BBBB", "")},
				}},
				{Role: holdfast.RoleTool, CallID: "c3", Error: "failed", Text: "no such page"},
				{Role: holdfast.RoleSystem, Text: "The user is away."},
				{Role: holdfast.RoleUser, Text: "back"},
				{Role: holdfast.RoleAssistant},
				{Role: holdfast.RoleAssistant, Text: "Hello"},
				{Role: holdfast.RoleUser, Text: "again"},
			},
			Tools: []holdfast.ToolSpec{
				{Name: "look", Description: "Looks.", Parameters: json.RawMessage(`{"$schema":"x","type":"object"}`)},
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
	if got, want := fmt.Sprint(kinds), "[1 image of type image/png 1 image of type image/tiff 1 document 5 "+
		"audio of type audio/mpeg]"; got != want {
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

// TestResultsOfOldModels: before the third generation, results are text.
func TestResultsOfOldModels(t *testing.T) {
	t.Parallel()
	req := &holdfast.ModelRequest{Messages: []holdfast.Message{
		{Role: holdfast.RoleAssistant, Calls: []holdfast.ToolCall{{ID: "c", Name: "f"}}},
		{
			Role:   holdfast.RoleTool,
			CallID: "c",
			Parts: []holdfast.Part{
				{
					Type:   holdfast.PartImage,
					Source: &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/png", Value: "AAAA"},
				},
			},
		},
	}}
	for model, want := range map[string]bool{"gemini-2.5-flash": false, "gemini-3-pro": true} {
		got := asked(t, testModel(t, model, nil), req)
		if strings.Contains(got, "AAAA") != want || strings.Contains(got, "cannot take: image") == want {
			t.Errorf("%s gets %s", model, got)
		}
	}
}

// TestPrefix: a request begins as the one before while its run lasts, and that of the next
// run up to the frontend's facts.
func TestPrefix(t *testing.T) {
	t.Parallel()
	m := testModel(t, "m1", nil)
	req, stable := &holdfast.ModelRequest{}, ""
	for turn := range 4 {
		req.Messages = append(req.Messages, holdfast.Message{Role: holdfast.RoleUser, Text: "go"})
		req.Context = []holdfast.ContextItem{{Description: "time", Value: fmt.Sprint(turn)}}
		last := stable
		for n := range 3 {
			got := asked(t, m, req)
			if !strings.HasPrefix(got, last) {
				t.Errorf("request %d of run %d does not begin as the one before:\n%s\n%s", n, turn, got, last)
			}
			if before, after, _ := strings.Cut(got, `{"text":"\u003ccontext`); n == 0 {
				if stable = strings.TrimSuffix(strings.TrimSuffix(before, `]},{"role":"user","parts":[`),
					","); !strings.HasSuffix(after, `{"text":"go"}]}]`) {
					t.Errorf("the person's words do not come last: %s", got)
				}
			}
			last = strings.TrimRight(got, "]}")
			req.Messages = append(req.Messages,
				heard(t, m, chunk(text("ok"), callPart("", "f", "{}", "s="))+finish("STOP"))...)
		}
	}
}

// TestSubset: the schema that the API takes.
func TestSubset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"z":{"type":"string","pattern":"x","default":"y"},"pattern":{"const":1.0}},` +
			`"required":["z"],"$schema":"s"}`,
			`{"type":"object","properties":{"z":{"type":"string"},"pattern":{"enum":[1.0]}},"required":["z"]}`},
		{`{"items":{"not":{}},"anyOf":[{"if":1,"type":"null"},true],"additionalProperties":false}`,
			`{"items":{},"anyOf":[{"type":"null"},true],"additionalProperties":false}`},
		{`{"definitions":{"a":{"title":"A","examples":[]}},"$ref":"#/definitions/a"}`,
			`{"$defs":{"a":{"title":"A"}},"$ref":"#/$defs/a"}`},
		{`true`, `true`},
		{`{"type":`, `{"type":`},
		{`{}`, `{}`},
		{`{"properties":[1],"anyOf":{}}`, `{"properties":[1],"anyOf":{}}`},
	} {
		if got := string(subset(json.RawMessage(c.schema))); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.schema, got, c.want)
		}
	}
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
		"the default": {o: Options{Getenv: env(map[string]string{"GEMINI_API_KEY": modeltest.Key,
			"GOOGLE_API_KEY": "other"})},
			url: DefaultBaseURL, key: modeltest.Key},
		"the other": {o: Options{Getenv: env(map[string]string{"GOOGLE_API_KEY": "other"})}, url: DefaultBaseURL,
			key: "other"},
		"a variable": {o: Options{KeyEnv: "OURS",
			Getenv: env(map[string]string{"OURS": "k", "GEMINI_BASE_URL": "http://gate/"})},
			url: "http://gate", key: "k"},
		"a header": {o: Options{Headers: map[string]string{"authorization": "Bearer x"}, Getenv: env(nil)},
			url: DefaultBaseURL, bearer: "Bearer x"},
		"none": {o: Options{Getenv: env(nil)},
			bad: "the model m needs a key: set GEMINI_API_KEY, or name a server that needs none with GEMINI_BASE_URL"},
		"our parameter": {o: Options{Key: "k", Params: map[string]any{"contents": "x"}},
			bad: `the parameter "contents" cannot be set: the server sets it itself`},
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
		if h := m.client.Header(); m.client.BaseURL != c.url || h.Get("X-Goog-Api-Key") != c.key ||
			h.Get("Authorization") != c.bearer {
			t.Errorf("%s: %s with %v", name, m.client.BaseURL, h)
		}
	}
}

// TestWhere: where requests go, whatever the name has in it.
func TestWhere(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gemini-3-pro":   "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
		"tunedModels/my": "/v1beta/tunedModels/my:streamGenerateContent?alt=sse",
		"a?b#c":          "/v1beta/models/a%3Fb%23c:streamGenerateContent?alt=sse",
	} {
		where := ""
		m, err := New(Options{
			Model: model,
			Key:   "k",
			HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
				where = r.Method + " " + r.URL.String()
				return &http.Response{
					StatusCode: http.StatusOK,
					Header:     http.Header{},
					Body:       http.NoBody,
					Request:    r,
				}
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range m.Stream(t.Context(), &holdfast.ModelRequest{}) {
		}
		if where != "POST "+DefaultBaseURL+want {
			t.Errorf("%s", where)
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

// TestFloods: signatures that are not passed on are bounded here.
func TestFloods(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{strings.Repeat("x", 1<<16), "x"} {
		stream := &repeating{text: []byte(chunk(signedText("", piece))), left: 64 << 20}
		if got := read(t, stream); !strings.Contains(got, "too long") {
			t.Errorf("%.300s", got)
		}
	}
}

// unbounded is an answer that may be longer than any real one.
type unbounded struct{ *answer }

// Event implements modelhttp.Parser.
func (u unbounded) Event(ev modelhttp.Event) error {
	u.held = 0
	return u.answer.Event(ev)
}

// benchDeltas are what providers send for a word, by what it is.
var benchDeltas = map[string]string{"text": chunk(text("some words")),
	"thoughts": chunk(thought("some words")), "a call": chunk(callPart("a", "f", `{"x": 1}`, "c2lnbmF0dXJl"))}

// told reads n of these.
func told(tb testing.TB, line string, n int) {
	tb.Helper()
	m, count := &Model{client: &modelhttp.Client{Model: "m"}}, 0
	err := m.client.Read(&repeating{text: []byte(line), left: int64(n) * int64(len(line))},
		func(holdfast.Delta, error) bool { count++; return true }, func(a *modelhttp.Answer) modelhttp.Parser {
			return unbounded{&answer{Answer: a, model: m}}
		})
	if count < n || !errors.Is(err, holdfast.ErrTruncated) {
		tb.Errorf("%d deltas of %d, then %v", count, n, err)
	}
}

// TestDeltasAllocate: how often memory is allocated for a delta, which is the same on every
// machine.
func TestDeltasAllocate(t *testing.T) {
	most := map[string]float64{"text": 16, "thoughts": 16, "a call": 24}
	for name, line := range benchDeltas {
		n := testing.AllocsPerRun(5, func() { told(t, line, 1000) }) / 1000
		if n > most[name]+0.5 {
			t.Errorf("%s: %.1f allocations, at most %v", name, n, most[name])
		}
	}
}

// BenchmarkDelta compares our cost of a model's delta with just decoding its JSON into
// the least that holds its text. The bar is 1.5 x.
func BenchmarkDelta(b *testing.B) {
	for name, line := range benchDeltas {
		b.Run(name+"/holdfast", func(b *testing.B) {
			b.ReportAllocs()
			told(b, line, b.N)
		})
		b.Run(name+"/decoding alone", func(b *testing.B) {
			b.ReportAllocs()
			data := strings.TrimPrefix(strings.TrimSpace(line), "data: ")
			for b.Loop() {
				var v struct {
					Candidates []struct {
						Content struct {
							Parts []struct {
								Text         string
								Thought      bool
								FunctionCall *struct {
									ID, Name string
									Args     json.RawMessage
								}
							}
						}
					}
				}
				if err := json.Unmarshal([]byte(data), &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestToolChoice: which tools may be called, in the API's form. It replaces what the parameters
// say, and is left out where there is no tool.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	auto := map[string]any{"mode": "AUTO"}
	m := testModel(t, "m1", map[string]any{"toolConfig": map[string]any{"functionCallingConfig": auto, "x": 1}})
	for _, c := range []struct{ choice, tool, want string }{
		{"", "", `"toolConfig":{"functionCallingConfig":{"mode":"AUTO"},"x":1}`},
		{"none", "", `],"toolConfig":{"functionCallingConfig":{"mode":"NONE"},"x":1}}`},
		{"required", "", `],"toolConfig":{"functionCallingConfig":{"mode":"ANY"},"x":1}}`},
		{"required", "g", `],"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["g"],"mode":"ANY"},"x":1}}`},
	} {
		req := &holdfast.ModelRequest{
			ToolChoice: c.choice,
			ChosenTool: c.tool,
			Messages:   []holdfast.Message{{Role: holdfast.RoleUser, Text: "go"}},
			Tools:      []holdfast.ToolSpec{{Name: "f"}, {Name: "g"}},
		}
		body, _, err := m.body(req)
		if err != nil || !strings.Contains(string(body.Bytes()), c.want) ||
			strings.Count(string(body.Bytes()), `"toolConfig":`) != 1 {
			t.Errorf("%s %s: %s, %v", c.choice, c.tool, body.Bytes(), err)
		}
		req.Tools = nil
		body, _, err = m.body(req)
		if err != nil || c.choice != "" && strings.Contains(string(body.Bytes()), c.want) {
			t.Errorf("%s %s without tools: %s, %v", c.choice, c.tool, body.Bytes(), err)
		}
	}
}
