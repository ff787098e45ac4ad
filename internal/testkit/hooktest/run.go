// Package hooktest has the common parts of the built-in middleware's tests: a run without a
// server, to call one hook as the function it is; models and ledgers that do as they are told;
// and a server with one agent, to see what a client sees.
package hooktest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Run is a run without a server. Tests may change its fields between two hooks.
type Run struct {
	// States, Ledger and At are what a hook sees of the run.
	States *state.Live
	Ledger store.Ledger
	At     holdfast.Iteration
	// History is the thread's.
	History History
	// Notices are the notices so far, each "name value".
	Notices []string
	// NotifyError is what Notify returns.
	NotifyError error

	t  *testing.T
	mu sync.Mutex // guards Notices while hooks run in parallel
}

// New returns a run of agent "a" on thread "th", for the user "ann" of the tenant "acme".
func New(t *testing.T) *Run {
	return &Run{t: t, Ledger: memstore.New(), States: state.NewLive(nil), At: holdfast.Iteration{
		Agent: "a", Thread: "th", Run: "r1", Principal: holdfast.Principal{Tenant: "acme", User: "ann"},
	}}
}

// Context returns the context of a hook that is called now.
func (r *Run) Context() context.Context {
	at := r.At
	ctx := state.ContextWith(r.t.Context(), r.States)
	if r.Ledger != nil {
		ctx = store.ContextWithLedger(ctx, r.Ledger)
	}
	return holdfast.ContextWithRun(ctx, &holdfast.RunContext{
		Iteration: func() holdfast.Iteration { return at },
		Record:    r.History.Record, History: r.History.Messages,
		Notify: func(_ context.Context, name string, value any) error {
			text, err := json.Marshal(value)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.Notices = append(r.Notices, name+" "+string(text))
			return errors.Join(err, r.NotifyError)
		},
	})
}

// Restore replaces the states by stored ones.
func (r *Run) Restore(stored string) {
	r.t.Helper()
	var s state.States
	if err := json.Unmarshal([]byte(stored), &s); err != nil {
		r.t.Fatal(err)
	}
	r.States = state.NewLive(&s)
}

// Crash replaces the states by what is stored of them, as after the death of the
// process, and forgets the notices.
func (r *Run) Crash() {
	r.t.Helper()
	r.Restore(r.Stored())
	r.Notices = nil
}

// Stored returns the stored form of the states.
func (r *Run) Stored() string {
	r.t.Helper()
	text, err := json.Marshal(r.States.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// State returns the stored form of one state; empty if it was never written.
func (r *Run) State(name string) string {
	r.t.Helper()
	values, err := r.States.Now().Values()
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(values, func(v state.Value) bool { return v.Name == name })
	if i < 0 {
		return ""
	}
	return string(values[i].Data)
}

// Next moves the run to its next iteration.
func (r *Run) Next() { r.At.Number, r.At.Answer = r.At.Number+1, nil }

// Ask calls the model through the Model hook and returns how that ends.
func (r *Run) Ask(m holdfast.Middleware, model holdfast.ModelCall) error { return r.Try(m, model, 0) }

// Try is Ask for a given attempt.
func (r *Run) Try(m holdfast.Middleware, model holdfast.ModelCall, attempt int) error {
	req := &holdfast.ModelRequest{Thread: r.At.Thread, Run: r.At.Run, Iteration: r.At.Number, Attempt: attempt}
	for d, err := range m.Model(model)(r.Context(), req) {
		if err != nil || d.Finish != "" {
			return err
		}
	}
	return nil
}

// Used returns what an account of the tenant holds.
func (r *Run) Used(account string) int64 {
	r.t.Helper()
	used, err := r.Ledger.Used(r.t.Context(), "acme", []string{account})
	if err != nil {
		r.t.Fatal(err)
	}
	return used[0]
}

// WantUsed checks what an account of the tenant holds.
func (r *Run) WantUsed(account string, want int64) {
	r.t.Helper()
	if got := r.Used(account); got != want {
		r.t.Errorf("%s: %d used, want %d", account, got, want)
	}
}

// WantNotices checks all notices so far.
func (r *Run) WantNotices(want ...string) {
	r.t.Helper()
	if !slices.Equal(r.Notices, want) {
		r.t.Errorf("got the notices\n%s\nwant\n%s", strings.Join(r.Notices, "\n"), strings.Join(want, "\n"))
	}
}
