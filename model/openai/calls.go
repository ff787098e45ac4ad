package openai

import (
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// call is a tool call that has started. Its place in answer.calls is the index that the
// loop sees.
type call struct {
	index int // the provider's; -1 if it gave none
	id    string
	name  string
	// held are arguments that came before the name.
	held []byte
	// extra is what the provider needs back of it, until it is passed on.
	extra string
}

// maxHeld bounds what an answer has of calls before their names, in bytes, and perCall is
// what each call counts besides its text: nobody else can bound what is not passed on.
const (
	maxHeld = 1 << 20
	perCall = 1 << 10
)

// hold keeps arguments until their call has a name.
func (a *answer) hold(c *call, args string) error {
	c.held = append(c.held, args...)
	if a.held += len(args); a.held > maxHeld {
		return a.TooMuch("calls without a name")
	}
	return nil
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
		if name == "" {
			a.held += perCall + len(id)
		}
	}
	c := a.calls[at]
	if c.id == "" {
		c.id = id
	}
	d := holdfast.CallDelta{Index: at, Arguments: args}
	if modelhttp.Given(t.Extra) {
		c.extra = a.model.client.Seal(0, 0, t.Extra)
	}
	if c.name == "" {
		// The loop must know the name when a call starts.
		if name == "" {
			return a.hold(c, args)
		}
		c.name = name
		d.ID, d.Name, d.Arguments = c.id, name, string(c.held)+args
		c.held = nil
	}
	d.EncryptedValue, c.extra = c.extra, ""
	return a.Emit(holdfast.Delta{Call: &d})
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
		if len(c.held) > 0 {
			return a.Malformed("The model made a tool call without a name.", errNameless)
		}
	}
	return nil
}
