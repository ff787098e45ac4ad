package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
	"github.com/holdfast-agents/holdfast/server"
)

// wire keeps what a provider is asked.
type wire struct{ asked []byte }

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (res *http.Response, err error) {
	w.asked, err = io.ReadAll(r.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, err
}

// provider is a provider's client, and what it asks.
type provider struct {
	name string
	// files is what the provider is called in sources that are its files.
	files string
	make  func(model string, params map[string]any, http *http.Client) (holdfast.Model, error)
	model string
}

// providers are all of them, in the order of the columns on the page.
var providers = []provider{
	{"`openai`", "openai", func(m string, p map[string]any, c *http.Client) (holdfast.Model, error) {
		return openai.New(openai.Options{Model: m, Key: "k", Params: p, HTTP: c})
	}, "gpt-5"},
	{"`responses`", "openai", func(m string, p map[string]any, c *http.Client) (holdfast.Model, error) {
		return responses.New(responses.Options{Model: m, Key: "k", Params: p, HTTP: c})
	}, "gpt-5"},
	{"`anthropic`", "anthropic", func(m string, p map[string]any, c *http.Client) (holdfast.Model, error) {
		return anthropic.New(anthropic.Options{Model: m, Key: "k", Params: p, HTTP: c})
	}, "claude-sonnet-4-5"},
	{"`gemini`", "gemini", func(m string, p map[string]any, c *http.Client) (holdfast.Model, error) {
		return gemini.New(gemini.Options{Model: m, Key: "k", Params: p, HTTP: c})
	}, "gemini-3-pro-preview"},
}

// asks returns what the provider is asked, and the notices of the run.
func (p *provider) asks(
	t *testing.T, model string, params map[string]any, req *holdfast.ModelRequest,
) (body string, notices []string) {
	t.Helper()
	w := &wire{}
	m, err := p.make(model, params, &http.Client{Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	ctx := holdfast.ContextWithRun(t.Context(),
		&holdfast.RunContext{Notify: func(_ context.Context, name string, value any) error {
			notices = append(notices, name+fmt.Sprint(value))
			return nil
		}})
	for range m.Stream(ctx, req) { // the answer is cut off: it is empty
	}
	return string(w.asked), notices
}

// kinds are the rows of the table: what a message may have.
var kinds = []struct {
	name  string
	kind  holdfast.PartType
	mimes []string
}{
	{"image: PNG, JPEG, WebP", holdfast.PartImage, []string{"image/png", "image/jpeg", "image/webp"}},
	{"image: GIF", holdfast.PartImage, []string{"image/gif"}},
	{"image: HEIC", holdfast.PartImage, []string{"image/heic"}},
	{"image: SVG, TIFF", holdfast.PartImage, []string{"image/svg+xml", "image/tiff"}},
	{"sound: WAV, MP3", holdfast.PartAudio, []string{"audio/wav", "audio/mpeg"}},
	{"sound: Ogg, FLAC, AAC", holdfast.PartAudio, []string{"audio/ogg", "audio/flac", "audio/aac"}},
	{"video: MP4, WebM", holdfast.PartVideo, []string{"video/mp4", "video/webm"}},
	{"PDF", holdfast.PartDocument, []string{"application/pdf"}},
	{"text, CSV, JSON", holdfast.PartDocument, []string{"text/plain", "text/csv", "application/json"}},
	{"other documents", holdfast.PartDocument, []string{"application/zip"}},
}

// TestMediaOfProviders: whatever a message or a tool's result has, from wherever, each
// provider either gets it, or reads a sentence in its place and the run has a notice. The
// page has the table.
func TestMediaOfProviders(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, k := range kinds {
		row := "| " + k.name + " |"
		for i := range providers {
			row += " " + cell(t, &providers[i], k.kind, k.mimes) + " |"
		}
		rows = append(rows, row)
	}
	page, err := os.ReadFile("../docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.Join(rows, "\n"); !strings.Contains(string(page), table) {
		t.Errorf("docs/extending.md has another table than\n%s", table)
	}
}

// cell says how a provider takes media of these types: by data (d), URL (u) and file (f), in
// messages, and after a + in results of tools.
func cell(t *testing.T, p *provider, kind holdfast.PartType, mimes []string) string {
	t.Helper()
	taken := map[bool]string{}
	for _, result := range []bool{false, true} {
		for _, s := range []struct {
			letter string
			source holdfast.Source
		}{
			{"d", holdfast.Source{Type: holdfast.SourceData,
				Value: base64.StdEncoding.EncodeToString([]byte("the content"))}},
			{"u", holdfast.Source{Type: holdfast.SourceURL, Value: "https://a.example/the-content"}},
			{"f", holdfast.Source{Type: holdfast.SourceFile, Value: "the-content", Provider: p.files}},
		} {
			all := map[bool]bool{}
			for _, mime := range mimes {
				s.source.MIMEType = mime
				all[sent(t, p, kind, s.source, result)] = true
			}
			if len(all) > 1 {
				t.Errorf("%s: %s differ by %s", p.name, mimes, s.letter)
			}
			if all[true] {
				taken[result] += s.letter
			}
		}
	}
	out := taken[false]
	if taken[true] != "" {
		out += " + " + taken[true]
	}
	if out == "" {
		return "–"
	}
	return out
}

// sent reports whether the provider gets the part, and checks that otherwise the model and
// the run are told.
func sent(t *testing.T, p *provider, kind holdfast.PartType, source holdfast.Source, result bool) bool {
	t.Helper()
	media := holdfast.Message{
		ID:   "u1",
		Role: holdfast.RoleUser,
		Parts: []holdfast.Part{
			{Type: holdfast.PartText, Text: "before"},
			{Type: kind, Source: &source},
			{Type: holdfast.PartText, Text: "behind"},
		},
	}
	messages := []holdfast.Message{media}
	if result {
		media.ID, media.Role, media.CallID = "t1", holdfast.RoleTool, "c1"
		messages = []holdfast.Message{
			{ID: "u1", Role: holdfast.RoleUser, Text: "go"},
			{
				ID:    "a1",
				Role:  holdfast.RoleAssistant,
				Calls: []holdfast.ToolCall{{ID: "c1", Name: "look", Arguments: json.RawMessage("{}")}},
			},
			media,
		}
	}
	body, notices := p.asks(t, p.model, nil, &holdfast.ModelRequest{Messages: messages})
	plain, err := base64.StdEncoding.DecodeString(source.Value)
	there := strings.Contains(body, source.Value) || err == nil && strings.Contains(body, string(plain))
	told := strings.Contains(body, "content that this model cannot take: "+string(kind)+" of type "+source.MIMEType)
	noticed := len(notices) == 1 && strings.HasPrefix(notices[0], "holdfast.content_left_out") &&
		strings.Contains(notices[0], source.MIMEType)
	if there == told || there == noticed || !strings.Contains(body, "before") || !strings.Contains(body, "behind") {
		t.Errorf("%s, %s from %s, in a result %t: sent %t, told %t, notices %q:\n%s", p.name, source.MIMEType,
			source.Type, result, there, told, notices, body)
	}
	return there
}

// TestFormsOfProviders: each provider enforces the form of an answer in its own way, with
// what the parameters say beside it, and says when it cannot.
func TestFormsOfProviders(t *testing.T) {
	t.Parallel()
	strict := &holdfast.Output{
		Name:        "city",
		Description: "A city.",
		Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}` +
			`},"required":["z","a"],` +
			`"additionalProperties":false}`),
	}
	bounded := &holdfast.Output{
		Name: "city",
		Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string",` +
			`"minLength":1}},"required":["z"]}`),
	}
	open := &holdfast.Output{
		Name:   "city",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":{"type":"string"}}`),
	}
	circular := &holdfast.Output{
		Name: "city",
		Schema: json.RawMessage(`{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},` +
			`"$defs":{"n":{"type":"object",` +
			`"properties":{"next":{"$ref":"#/$defs/n"}}}}}`),
	}
	tools := []holdfast.ToolSpec{{Name: "look"}}
	for _, c := range []struct {
		at     int
		model  string
		params map[string]any
		form   *holdfast.Output
		tools  []holdfast.ToolSpec
		want   string // empty if the provider does not enforce it
	}{
		{0, "gpt-5", nil, strict, tools,
			`"response_format":{"json_schema":{"description":"A city.","name":"city","schema":` +
				string(strict.Schema) + `,"strict":true},"type":"json_schema"}`},
		{0, "gpt-5", nil, bounded, nil, `"schema":` + string(bounded.Schema) + `,"strict":false}`},
		{0, "gpt-5", map[string]any{"response_format": map[string]any{"type": "json_object"}}, strict, nil, ""},
		{1, "gpt-5", map[string]any{"text": map[string]any{"verbosity": "low"}}, strict, tools,
			`"text":{"format":{"description":"A city.","name":"city","schema":` + string(strict.Schema) +
				`,"strict":true,"type":"json_schema"},"verbosity":"low"}`},
		{1, "gpt-5", map[string]any{"text": map[string]any{"format": map[string]any{"type": "json_object"}}}, strict,
			nil, ""},
		{2, "claude-sonnet-4-5", nil, strict, tools, `"output_config":{"format":{"schema":{"type":"object",` +
			`"properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z","a"],` +
			`"additionalProperties":false},"type":"json_schema"}}`},
		{2, "claude-opus-5", map[string]any{"output_config": map[string]any{"effort": "low"}}, bounded, nil,
			`"output_config":{"effort":"low","format":{"schema":{"type":"object","properties":{"z":{"type":"string"}}` +
				`,"required":["z"],"additionalProperties":false},"type":"json_schema"}}`},
		{2, "claude-sonnet-4-5", nil, open, nil, ""},
		{2, "claude-sonnet-4-5", nil, circular, nil, ""},
		{2, "claude-3-5-haiku-latest", nil, strict, nil, ""},
		{3, "gemini-3-pro-preview", map[string]any{"generationConfig": map[string]any{"temperature": 1}}, bounded,
			tools, `"generationConfig":{"responseJsonSchema":{"type":"object","properties":{"z":{"type":"string"}},` +
				`"required":["z"]},"responseMimeType":"application/json","temperature":1}`},
		{3, "gemini-2.5-flash", nil, strict, nil, `"responseMimeType":"application/json"`},
		{3, "gemini-2.5-flash", nil, strict, tools, ""},
		{3, "gemini-2.0-flash", nil, strict, nil, ""},
		{3, "gemini-3-pro-image-preview",
			map[string]any{"generationConfig": map[string]any{"responseModalities": []string{"IMAGE"}}}, strict, nil,
			""},
	} {
		p := &providers[c.at]
		m, err := p.make(c.model, c.params, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := &holdfast.ModelRequest{
			Messages: []holdfast.Message{{ID: "u", Role: holdfast.RoleUser, Text: "x"}},
			Tools:    c.tools,
			Output:   c.form,
		}
		if enforces := m.(enforcing).EnforcesOutput(req); enforces != (c.want != "") {
			t.Errorf("%s with %s: it enforces it: %t", c.model, c.form.Schema, enforces)
		}
		if c.want == "" {
			continue
		}
		if body, _ := p.asks(t, c.model, c.params, req); !strings.Contains(body, c.want) {
			t.Errorf("%s is asked\n%s\nwant\n%s", c.model, body, c.want)
		}
		req.Output = nil
		if body, _ := p.asks(t, c.model, nil, req); regexp.MustCompile(`json_schema|responseJsonSchema|output_config`).
			MatchString(body) {
			t.Errorf("%s without a form is asked %s", c.model, body)
		}
	}
}

// enforcing and declaring are what a model may say of itself.
type (
	enforcing interface {
		EnforcesOutput(*holdfast.ModelRequest) bool
	}
	declaring interface {
		Media() (takes, makes map[holdfast.PartType]bool)
	}
)

// TestMediaThatProvidersDeclare: what a model says of itself is what it does.
func TestMediaThatProvidersDeclare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at           int
		model        string
		params       map[string]any
		takes, makes string
	}{
		{0, "gpt-5", nil, "-video", "-audio"},
		{1, "gpt-5", nil, "-audio -video", "-audio -image"},
		{1, "gpt-5", map[string]any{"tools": []any{map[string]any{"type": "image_generation"}}}, "-audio -video",
			"+image -audio"},
		{2, "claude-sonnet-4-5", nil, "+document +image -audio -video", "-audio -image"},
		{3, "gemini-3-pro-preview", nil, "+audio +document +image +video", "-image"},
		{3, "gemini-3-pro-image-preview", nil, "", "+image"},
		{3, "gemma-3", nil, "", "-image"},
	} {
		m, err := providers[c.at].make(c.model, c.params, nil)
		if err != nil {
			t.Fatal(err)
		}
		takes, makes := m.(declaring).Media()
		if got := declared(takes); got != c.takes {
			t.Errorf("%s takes %s, want %s", c.model, got, c.takes)
		}
		if got := declared(makes); got != c.makes {
			t.Errorf("%s makes %s, want %s", c.model, got, c.makes)
		}
	}
}

func declared(types map[holdfast.PartType]bool) string {
	var out []string
	for kind, yes := range types {
		out = append(out, map[bool]string{true: "+", false: "-"}[yes]+string(kind))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestMediaOfFallbacks: of an agent with several models it is declared what they say alike,
// also if one has timeouts of its own.
func TestMediaOfFallbacks(t *testing.T) {
	t.Parallel()
	agents, _, err := loadAgents(written(t, `
agents:
  - name: several
    models: [{name: gemini/gemini-3-pro-preview, timeout: 1m}, anthropic/claude-sonnet-4-5]
    output: {schema: {type: object, properties: {city: {type: string}}}}
`), server.Parts{Getenv: func(name string) string {
		return map[string]string{"GEMINI_API_KEY": "g", "ANTHROPIC_API_KEY": "a"}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := config(t)
	c.Agents = agents
	body := get(t, started(t, c)+"/agents/several/capabilities")
	for _, want := range []string{`"multimodal":{"input":{"image":true,"pdf":true},"output":{"image":false}}`,
		`"structuredOutput":true`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
	if m, can := agents[0].Model.(enforcing); !can ||
		!m.EnforcesOutput(&holdfast.ModelRequest{Output: agents[0].Output}) {
		t.Error("a model with timeouts enforces nothing")
	}
}
