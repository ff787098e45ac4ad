package main

import (
	"context"
	"errors"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

// named is a model that says whose it is.
type named struct {
	holdfast.ModelFunc
	name string
}

// ModelName implements the model's name.
func (n named) ModelName() (provider, model string) { return "test", n.name }

// chained is an agent whose first model always breaks off, in a call; the second one
// follows the script.
func (w *worker) chained() holdfast.Agent {
	first := func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			w.note("asked model=first thread=%s iteration=%d", req.Thread, req.Iteration)
			half := &holdfast.CallDelta{ID: "half", Name: "work", Arguments: `{"n":"ha`}
			if yield(holdfast.Delta{Text: "half an ans"}, nil) && yield(holdfast.Delta{Call: half}, nil) {
				yield(holdfast.Delta{},
					&holdfast.ModelError{Kind: failure.Cut, Retryable: true, Err: errors.New("cut")})
			}
		}
	}
	second := func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			w.note("asked model=second thread=%s iteration=%d", req.Thread, req.Iteration)
			w.at(req.Thread, "second", req.Iteration)
			w.model(ctx, req)(yield)
		}
	}
	a := w.agent("chained")
	a.Model, a.Fallbacks = named{first, "first"}, []holdfast.Model{named{second, "second"}}
	return a
}
