package hooks

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// saying is a model that says a text in pieces, and keeps what it was asked.
type saying struct {
	pieces   []string
	enforces bool
	asked    *holdfast.ModelRequest
}

// Stream implements [holdfast.Model].
func (s *saying) Stream(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	s.asked = req
	return func(yield func(holdfast.Delta, error) bool) {
		for _, p := range s.pieces {
			if !yield(holdfast.Delta{Text: p}, nil) {
				return
			}
		}
		yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
	}
}

// EnforcesOutput reports whether the form of an answer is enforced.
func (s *saying) EnforcesOutput(*holdfast.ModelRequest) bool { return s.enforces }

// text is what is heard of the model.
func (s *saying) text(t *testing.T, req *holdfast.ModelRequest) string {
	t.Helper()
	var b strings.Builder
	for d, err := range formed(t.Context(), s, req) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(d.Text)
	}
	return b.String()
}

// TestForms: a model whose provider does not enforce the form of its answer is told about it
// first of all, and a fence around its answer is removed; for another nothing changes.
func TestForms(t *testing.T) {
	t.Parallel()
	req := &holdfast.ModelRequest{
		Instructions: []string{"Be brief."},
		Output:       &holdfast.Output{Name: "report", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	fenced := "```json\n{}\n```"
	plain := &saying{pieces: []string{fenced}}
	if got := plain.text(t, req); got != "{}" {
		t.Errorf("%q", got)
	}
	if in := plain.asked.Instructions; len(in) != 2 || in[1] != "Be brief." ||
		!strings.Contains(in[0], `{"type":"object"}`) || plain.asked.Output != nil {
		t.Errorf("it is told %q", in)
	}
	if len(req.Instructions) != 1 || req.Output == nil {
		t.Error("the request was changed")
	}
	enforcing := &saying{pieces: []string{fenced}, enforces: true}
	if got := enforcing.text(t, req); got != fenced || enforcing.asked != req {
		t.Errorf("%q", got)
	}
	free := &saying{pieces: []string{fenced}}
	if got := free.text(t, &holdfast.ModelRequest{}); got != fenced {
		t.Errorf("%q", got)
	}
}

// TestFences: however a text is cut, a fence around all of it is removed and nothing else.
func TestFences(t *testing.T) {
	t.Parallel()
	req := &holdfast.ModelRequest{Output: &holdfast.Output{Name: "report", Schema: json.RawMessage(`{}`)}}
	for text, want := range map[string]string{
		`{"a":1}`:                              `{"a":1}`,
		"":                                     "",
		"``":                                   "``",
		"```json\n{\"a\":\"```\"}\n```\n":      "{\"a\":\"```\"}",
		"\n ```\n{}\n```":                      "{}",
		"```JSON\r\n{}\r\n```  ":               "{}",
		"```go\nfunc()\n```":                   "```go\nfunc()\n```",
		"```json\n{}":                          "{}",
		"```json\n{}\n``` That is it.":         "{}\n``` That is it.",
		"Here:\n```json\n{}\n```":              "Here:\n```json\n{}\n```",
		"```json":                              "```json",
		"````\n{}\n````":                       "````\n{}\n````",
		"```json {}\n```":                      "```json {}\n```",
		"```json\n{\"a\": \"x  \\n\" }  \n```": "{\"a\": \"x  \\n\" }",
	} {
		for at := range len(text) + 1 {
			for to := at; to <= len(text); to++ {
				m := &saying{pieces: []string{text[:at], text[at:to], text[to:]}}
				if got := m.text(t, req); got != want {
					t.Fatalf("%q cut at %d and %d: %q, want %q", text, at, to, got, want)
				}
			}
		}
	}
}
