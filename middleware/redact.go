package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// NoticeRedacted says that something was hidden in an iteration: where (the model,
// or tools by name), the names of the patterns, and how often.
const NoticeRedacted = "holdfast.redacted"

// RedactionOptions are the options of [Redaction] and [RedactLogs].
type RedactionOptions struct {
	// Patterns say what is hidden, besides the built-in ones.
	Patterns []RedactionPattern `json:"patterns,omitempty"`
	// Builtin turns the built-in patterns off if it is false: api_key, bearer_token,
	// jwt, private_key, url_password, card_number.
	Builtin *bool `json:"builtin,omitempty"`
	// Arguments hides secrets in the arguments of tool calls too. Then the tools get
	// them so: nothing that a tool needs may look like a secret.
	Arguments bool `json:"arguments,omitempty"`
}

// RedactionPattern is a kind of secret.
type RedactionPattern struct {
	// Name is shown in the secret's place, as "[redacted:name]", and counted: lower
	// case letters, digits, _ and -.
	Name string `json:"name"`
	// Regexp is what is hidden, in RE2's syntax. If it has a group named secret, as in
	// "pin: (?P<secret>[0-9]{4})", only the group is hidden.
	Regexp string `json:"regexp"`
}

// Validate says what is wrong with the options, and what to write instead.
func (o RedactionOptions) Validate() error {
	_, err := newRedactor(o)
	return err
}

// RedactionState is what was hidden in a run: how often, by name.
type RedactionState struct {
	Counts map[string]int `json:"counts,omitempty"`
	// Untold is what no notice has told yet, Where the places of it.
	Untold map[string]int `json:"untold,omitempty"`
	Where  []string       `json:"where,omitempty"`
}

var redactionState = holdfast.RegisterState(holdfast.StateSpec[RedactionState]{
	Name: "holdfast.redaction", Version: 1, Scope: holdfast.ScopeRun,
})

// Redaction hides secrets in what tools return and what the model says, before
// anything of it is stored, shown or logged. What a person writes stays as it is, and
// so do the arguments of tool calls, unless the options say otherwise.
//
// Several of them in an agent share one count.
func Redaction(o RedactionOptions) holdfast.Middleware {
	mustBeValid("Redaction", o)
	r, _ := newRedactor(o) // it was just validated
	return holdfast.Middleware{
		Name:           "holdfast.redaction",
		States:         []holdfast.AnyState{redactionState},
		Model:          r.model,
		Tool:           r.tool,
		AfterIteration: tellRedacted,
	}
}

func (r *redactor) tool(next holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		result, err := next(ctx, tool, call)
		h := hiding{redactor: r}
		result.Text = h.text(result.Text)
		result.Parts = h.parts(result.Parts)
		err = h.err(err)
		h.count(ctx, "tool:"+call.Name)
		return result, err
	}
}

func (r *redactor) model(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			h := hiding{redactor: r}
			defer h.count(ctx, "model")
			s := &answerStream{text: redactStream{hiding: &h}, reasoning: redactStream{hiding: &h}, yield: yield}
			if r.arguments {
				s.calls = map[int]*redactStream{}
			}
			for d, err := range next(ctx, req) {
				if err != nil {
					// What is held back may be the beginning of a secret.
					yield(holdfast.Delta{}, h.err(err))
					return
				}
				if !s.pass(d) {
					return
				}
			}
		}
	}
}

// tellRedacted tells what was hidden in an iteration.
func tellRedacted(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
	now, err := redactionState.Load(ctx)
	if err != nil || len(now.Untold) == 0 {
		return
	}
	n := 0
	for _, count := range now.Untold {
		n += count
	}
	// Neither can fail but at the end of the run, and the counts stay.
	_ = holdfast.Notify(ctx, NoticeRedacted, redactedNotice{Where: now.Where, Names: slices.Sorted(maps.Keys(now.Untold)), Count: n})
	_, _ = redactionState.Update(ctx, func(s RedactionState) RedactionState { return RedactionState{Counts: s.Counts} })
}

type redactedNotice struct {
	Where []string `json:"where"`
	Names []string `json:"names"`
	Count int      `json:"count"`
}

// hiding hides secrets in one call, and counts them.
type hiding struct {
	*redactor
	counts map[string]int
}

func (h *hiding) text(text string) string {
	spans := h.find(text)
	if len(spans) == 0 {
		return text
	}
	return h.replaced(text, spans)
}

// replaced puts the names of secrets in their place.
func (h *hiding) replaced(text string, spans []secretSpan) string {
	var out []byte
	end := 0
	for _, s := range spans {
		out = append(out, text[end:s.from]...)
		out = append(out, placeholder+s.name+"]"...)
		end = s.to
		if h.counts == nil {
			h.counts = map[string]int{}
		}
		h.counts[s.name]++
	}
	return string(append(out, text[end:]...))
}

// parts hides in text parts, in a copy: the parts belong to the tool.
func (h *hiding) parts(parts []holdfast.Part) []holdfast.Part {
	copied := false
	for i := range parts {
		text := h.text(parts[i].Text)
		if text == parts[i].Text {
			continue
		}
		if !copied {
			parts, copied = slices.Clone(parts), true
		}
		parts[i].Text = text
	}
	return parts
}

// err hides in an error's text, in a copy of the same kind.
func (h *hiding) err(err error) error {
	var ask *holdfast.Interrupt
	var end *holdfast.EndRun
	var known *holdfast.Error
	var failed *holdfast.ModelError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ask):
		c := *ask
		c.Message, c.Metadata = h.text(ask.Message), h.json(ask.Metadata)
		return &c
	case errors.As(err, &end):
		return &holdfast.EndRun{Err: h.known(end.Err)}
	case errors.As(err, &known):
		return h.known(known)
	case errors.As(err, &failed):
		c := *failed
		c.Public, c.Err = h.text(failed.Public), h.err(failed.Err)
		return &c
	}
	text := err.Error()
	if hidden := h.text(text); hidden != text {
		return &redactedError{text: hidden, cause: err}
	}
	return err
}

func (h *hiding) known(e *holdfast.Error) *holdfast.Error {
	c := *e
	c.Message, c.Hint, c.Err = h.text(e.Message), h.text(e.Hint), h.err(e.Err)
	return &c
}

// json hides in a JSON text. If what is left is not JSON, it becomes a string.
func (h *hiding) json(data json.RawMessage) json.RawMessage {
	text := h.text(string(data))
	if text == string(data) || json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	b, _ := json.Marshal(text) // a string can always be written
	return b
}

// count adds what was hidden to the run's state. What is hidden stays hidden if it
// cannot be counted.
func (h *hiding) count(ctx context.Context, where string) {
	if len(h.counts) == 0 {
		return
	}
	_, _ = redactionState.Update(ctx, func(s RedactionState) RedactionState {
		if !slices.Contains(s.Where, where) {
			s.Where = append(slices.Clone(s.Where), where)
		}
		s.Counts, s.Untold = added(s.Counts, h.counts), added(s.Untold, h.counts)
		return s
	})
}

// added is the sum of counts, in a map of its own.
func added(a, b map[string]int) map[string]int {
	sum := maps.Clone(b)
	for name, n := range a {
		sum[name] += n
	}
	return sum
}

// redactedError is an error whose text had a secret in it. Its cause can still be
// tested for.
type redactedError struct {
	text  string
	cause error
}

// Error returns the text without the secret.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *redactedError) Unwrap() error { return e.cause }
