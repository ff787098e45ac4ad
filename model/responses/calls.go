package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast"
)

var (
	errNameless = errors.New("a tool call has no name")
	errOther    = errors.New("the end of a call has other arguments than its pieces")
)

// called takes the start of a call, or its end, whose arguments have the last word.
func (a *answer) called(it *item, w *wireItem) error {
	if !it.begun {
		if w.Name == "" && !it.done {
			return nil // it may come later
		}
		if err := a.begin(it, w); err != nil {
			return err
		}
	}
	return a.last(it, w.Arguments, it.done)
}

// all takes the whole arguments of the call with an index, which some servers send instead
// of pieces.
func (a *answer) all(index int, whole string) error {
	it, err := a.at(index)
	if err != nil || it.done {
		return err
	}
	return a.last(it, whole, true)
}

// last takes the arguments as they are so far, or at the end.
func (a *answer) last(it *item, whole string, end bool) error {
	if whole == "" {
		return nil
	}
	rest, ok := bytes.CutPrefix([]byte(whole), it.arguments)
	switch {
	case ok && len(rest) > 0:
		return a.arguments(it, string(rest))
	case !ok && end && !sameJSON(it.arguments, []byte(whole)):
		// Passed-on parts cannot be taken back but with the whole answer.
		return a.Malformed("The model's provider sent the arguments of a tool call twice, and not the same.", errOther)
	}
	return nil
}

// begin passes on the start of a call, with the arguments that came before it.
func (a *answer) begin(it *item, w *wireItem) error {
	if w.Name == "" {
		return a.Malformed("The model made a tool call without a name.", errNameless)
	}
	if err := a.flush(); err != nil {
		return err
	}
	it.begun, it.call = true, a.calls
	a.calls++
	return a.Emit(holdfast.Delta{
		Call: &holdfast.CallDelta{
			Index:     it.call,
			ID:        cmp.Or(w.CallID, w.ID),
			Name:      w.Name,
			Arguments: string(it.arguments),
		},
	})
}

// more takes a piece of the arguments of the call with an index.
func (a *answer) more(index int, piece string) error {
	it, err := a.at(index)
	if err != nil || piece == "" || it.done {
		return err
	}
	return a.arguments(it, it.seam.Join(piece))
}

// arguments passes a piece of arguments on, once the call has begun.
func (a *answer) arguments(it *item, piece string) error {
	if err := a.hold(len(piece)); err != nil {
		return err
	}
	it.arguments = append(it.arguments, piece...)
	if !it.begun {
		return nil
	}
	return a.Emit(holdfast.Delta{Call: &holdfast.CallDelta{Index: it.call, Arguments: piece}})
}

// sameJSON reports whether two texts are the same JSON but for spaces.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
