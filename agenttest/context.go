package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/server"
)

// Option changes the run that [Context] makes.
type Option func(*runOptions)

type runOptions struct {
	states *holdfast.States
	ledger holdfast.Ledger
	at     holdfast.Iteration
}

// WithState has a state begin with a value.
func WithState[T any](key *holdfast.StateKey[T], value T) Option {
	return func(o *runOptions) { o.states = key.With(o.states, value) }
}

// WithLedger has the run use a ledger, in the place of one of its own in memory.
func WithLedger(l holdfast.Ledger) Option { return func(o *runOptions) { o.ledger = l } }

// At says where the run stands.
func At(it holdfast.Iteration) Option { return func(o *runOptions) { o.at = it } }

// Recorded is what a hook has done to the run of its [Context].
type Recorded struct {
	live    *holdfast.LiveStates
	mu      sync.Mutex
	notices []Notice
}

// Notices are what [holdfast.Notify] was given.
func (r *Recorded) Notices() []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notices)
}

// States are the states as they are now; [holdfast.StateKey.Load] reads one of them
// from the context too.
func (r *Recorded) States() *holdfast.States { return r.live.Now() }

func (r *Recorded) notify(_ context.Context, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("notify %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, Notice{Name: name, Value: data})
	return nil
}

// Context makes a context as hooks get it, to test one hook as the function that it
// is: with states, a ledger, and a place for notices. It ends with the test.
func Context(t testing.TB, options ...Option) (context.Context, *Recorded) {
	t.Helper()
	o := runOptions{at: holdfast.Iteration{Agent: "agent", Principal: server.LocalPrincipal(), Thread: "t", Run: "run1"}}
	for _, change := range options {
		change(&o)
	}
	if o.ledger == nil {
		o.ledger = memstore.New()
	}
	r := &Recorded{live: holdfast.NewLiveStates(o.states)}
	return holdfast.ContextWithRun(t.Context(), &holdfast.RunContext{
		States: r.live, Ledger: o.ledger, Notify: r.notify, Iteration: func() holdfast.Iteration { return o.at },
	}), r
}
