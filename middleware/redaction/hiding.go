package redaction

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// reasonLogin is credential.ReasonLogin, without the package's HTTP client.
const reasonLogin = "holdfast:login_required"

// hiding hides secrets in one call and counts them.
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

// replaced replaces secrets by the names of their patterns.
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

// parts hides secrets in text parts. The slice belongs to the tool, so it returns a
// changed copy.
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

// err hides secrets in the text of an error, in a copy of the same type.
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
		c.Message = h.text(ask.Message)
		if ask.Reason != reasonLogin { // its address is for this user, and must stay whole
			c.Metadata = h.json(ask.Metadata)
		}
		return &c
	case errors.As(err, &end):
		return &holdfast.EndRun{Err: h.known(end.Err)}
	case errors.As(err, &known):
		c := h.known(known)
		if err != error(known) { // what is around it says something, too
			c.Err = &redactedError{text: h.text(err.Error()), cause: err}
		}
		return c
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

// json hides secrets in JSON. If the result is not valid JSON, it becomes a string.
func (h *hiding) json(data json.RawMessage) json.RawMessage {
	text := h.text(string(data))
	if text == string(data) || json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	b, _ := json.Marshal(text) // a string can always be encoded
	return b
}

// redactedError is an error whose text contained a secret. errors.Is and errors.As still
// find the cause.
type redactedError struct {
	text  string
	cause error
}

// Error returns the text without the secret.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *redactedError) Unwrap() error { return e.cause }
