package openai

import (
	"errors"

	"github.com/holdfast-agents/holdfast"
)

// call is a tool call that has started. Its place in answer.calls is the index that the
// loop sees.
type call struct {
	index int // the provider's; -1 if it gave none
	id    string
	name  string
	// held are arguments that came before the name.
	held string
}

// call passes on a piece of a tool call.
func (a *answer) call(t *toolCall) error {
	id, name, args := t.ID, t.Function.Name, string(t.Function.Arguments)
	at := a.find(t)
	if at < 0 {
		begun := &call{index: -1}
		if t.Index != nil {
			begun.index = *t.Index
		}
		at = len(a.calls)
		a.calls = append(a.calls, begun)
	}
	c := a.calls[at]
	if c.id == "" {
		c.id = id
	}
	d := holdfast.CallDelta{Index: at, Arguments: args}
	if c.name == "" {
		// The loop must know the name when a call starts.
		if name == "" {
			c.held += args
			return nil
		}
		c.name = name
		d.ID, d.Name, d.Arguments = c.id, name, c.held+args
		c.held = ""
	}
	return a.emit(holdfast.Delta{Call: &d})
}

// find returns the place of the call that a piece continues, or -1. Pieces belong
// together by index and id, but providers differ: some reuse an index for the next call,
// some give no index or no id, and some give a different id in each piece.
func (a *answer) find(t *toolCall) int {
	for at := len(a.calls) - 1; at >= 0 && t.ID != ""; at-- {
		c := a.calls[at]
		if c.id == t.ID && (t.Index == nil || *t.Index == c.index) {
			return at
		}
	}
	for at := len(a.calls) - 1; at >= 0; at-- {
		c := a.calls[at]
		switch {
		case t.Index == nil && t.Function.Name == "":
			return at // the latest one
		case t.Index != nil && *t.Index == c.index && !begins(t, c):
			return at
		}
	}
	return -1
}

// begins reports whether a piece with the index of c is the first of another call: only
// a first piece has a name, unless the name is repeated.
func begins(t *toolCall, c *call) bool {
	otherID := t.ID != "" && c.id != "" && t.ID != c.id
	otherName := c.name != "" && t.Function.Name != c.name
	return t.Function.Name != "" && (otherID || otherName)
}

var errNameless = errors.New("a tool call has arguments and no name")

// nameless returns the error of an answer with a call that nothing can run.
func (a *answer) nameless() error {
	for _, c := range a.calls {
		if c.held != "" {
			return &holdfast.ModelError{Retryable: true, Public: "The model made a tool call without a name.", Err: errNameless}
		}
	}
	return nil
}
