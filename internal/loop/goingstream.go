package loop

import (
	"encoding/json"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/decide"
)

// The stream of a model that is an agent itself, which goes on from one iteration to the next.

// going is the stream of such a model, from its first message to its last.
type going struct {
	next     func() (holdfast.Delta, error, bool)
	stop     func()
	panicked func(p any) error
	// ahead was read, and nobody has taken it.
	ahead *holdfast.Delta
	// ids are those of its calls in the thread, by the model's own.
	ids map[string]string
	// chosen are the tools that it may call.
	chosen decide.Choice
	beside besideEvents
}

// newGoing begins to read an answer. cancel ends its request, and panicked makes an error of a panic.
func newGoing(
	answer iter.Seq2[holdfast.Delta, error], chosen decide.Choice, cancel func(), panicked func(any) error,
) *going {
	g := &going{ids: map[string]string{}, chosen: chosen, panicked: panicked}
	next, stop := iter.Pull2(answer)
	g.next = next
	g.stop = func() { stop(); cancel() } // in this order the connection can be used again
	return g
}

// end ends the stream, and with it the request.
func (g *going) end() {
	g.beside.end()
	defer func() {
		if p := recover(); p != nil { // the model's own, while it was cut off
			_ = g.panicked(p)
		}
	}()
	g.stop()
}

// continues reports whether a model is an agent itself.
func continues(m holdfast.Model) bool {
	c, is := m.(interface{ Continues() bool })
	return is && c.Continues()
}

// read returns the next delta. A stream that ends is one that was cut off: the last delta of one
// that is complete is never followed by a read.
func (g *going) read() (d holdfast.Delta, err error) {
	if g.ahead != nil {
		d, g.ahead = *g.ahead, nil
		return d, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = g.panicked(p)
		}
	}()
	d, err, more := g.next()
	if err == nil && !more {
		err = errCutOff()
	}
	return d, err
}

// errCutOff is the error of an answer without an end.
func errCutOff() error {
	return &holdfast.ModelError{
		Kind:      failure.Cut,
		Retryable: true,
		Public:    "The model's answer was cut off.",
		Err:       holdfast.ErrTruncated,
	}
}

// besideEvents are what a stream has open of them.
type besideEvents struct {
	steps map[string]func()
	// activities are the contents of its activities, by the ids of its messages.
	activities map[string]json.RawMessage
	leftOut    int // events that are not shown
}

// end ends the steps that are open.
func (b *besideEvents) end() {
	for _, finish := range b.steps {
		finish()
	}
	b.steps = nil
}
