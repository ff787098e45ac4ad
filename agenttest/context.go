package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Option changes the run that [Context] makes.
type Option func(*runOptions)

type runOptions struct {
	states *state.States
	ledger store.Ledger
	at     holdfast.Iteration
}

// WithState sets a state's value at the start.
func WithState[T any](key *state.Key[T], value T) Option {
	return func(o *runOptions) { o.states = key.With(o.states, value) }
}

// WithLedger makes the run use this ledger instead of one of its own in memory.
func WithLedger(l store.Ledger) Option { return func(o *runOptions) { o.ledger = l } }

// At sets where the run stands.
func At(it holdfast.Iteration) Option { return func(o *runOptions) { o.at = it } }

// Recorded shows what a hook did to the run of its [Context].
type Recorded struct {
	live    *state.Live
	mu      sync.Mutex
	notices []Notice
	kept    map[string]json.RawMessage
	shown   []activity.Change
	steps   []string
}

// Notices returns what [holdfast.Notify] was called with, in order.
func (r *Recorded) Notices() []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notices)
}

// Shown returns what activities have shown, in order.
func (r *Recorded) Shown() []activity.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.shown)
}

func (r *Recorded) show(_ context.Context, c activity.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = append(r.shown, c)
	return nil
}

// Steps returns the names of the steps that have ended, in that order.
func (r *Recorded) Steps() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.steps)
}

func (r *Recorded) step(_ context.Context, name string) (func(), error) {
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.steps = append(r.steps, name)
	}), nil
}

// Kept returns what the call with this id has kept last; null if nothing.
func (r *Recorded) Kept(call string) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[call]
}

func (r *Recorded) keep(_ context.Context, call string, value json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[call] = value
	return nil
}

// States returns the current states. [state.Key.Load] with the context reads
// the same ones.
func (r *Recorded) States() *state.States { return r.live.Now() }

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

// Context makes a context like the one that hooks get, with states, a ledger and a
// record of notices, activities and steps, to test a single hook by calling it. It ends with the test. For a
// tool, [holdfast.ContextWithCall] adds the call.
func Context(t testing.TB, options ...Option) (context.Context, *Recorded) {
	t.Helper()
	o := runOptions{
		at: holdfast.Iteration{Agent: "agent", Principal: server.LocalPrincipal(), Thread: "t", Run: "run1"},
	}
	for _, change := range options {
		change(&o)
	}
	if o.ledger == nil {
		o.ledger = memstore.New()
	}
	r := &Recorded{live: state.NewLive(o.states), kept: map[string]json.RawMessage{}}
	ctx := state.ContextWith(t.Context(), r.live)
	if o.ledger != nil {
		ctx = store.ContextWithLedger(ctx, o.ledger)
	}
	ctx = activity.ContextWith(ctx, &activity.Run{Show: r.show, Step: r.step})
	return holdfast.ContextWithRun(ctx, &holdfast.RunContext{
		Notify: r.notify, Iteration: func() holdfast.Iteration { return o.at }, Keep: r.keep,
	}), r
}
