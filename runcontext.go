package holdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// RunContext is what hooks and tools reach through their context: the states of the
// run, and what it shares with others. The server makes it; tests may too.
type RunContext struct {
	// States are the run's middleware states; nil makes every access to a state fail
	// with [ErrNoRun].
	States *LiveStates
	// Ledger is the store's ledger; if it is nil, [LedgerFrom] returns [ErrNoRun].
	Ledger Ledger
	// Iteration returns where the run stands; nil means the zero [Iteration].
	Iteration func() Iteration
	// Notify implements [Notify]; nil drops notices.
	Notify func(ctx context.Context, name string, value any) error
}

type runKey struct{}

// ContextWithRun returns a context that carries a run.
func ContextWithRun(ctx context.Context, run *RunContext) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// ErrNoRun is returned outside a run by functions that need one in the context.
var ErrNoRun = errors.New("there is no run in this context")

func runFrom(ctx context.Context) (*RunContext, error) {
	r, ok := ctx.Value(runKey{}).(*RunContext)
	if !ok {
		return nil, ErrNoRun
	}
	return r, nil
}

// IterationFrom returns where the run in the context stands: the agent, the
// principal, the thread. Outside a run it is the zero value.
func IterationFrom(ctx context.Context) Iteration {
	if r, err := runFrom(ctx); err == nil && r.Iteration != nil {
		return r.Iteration()
	}
	return Iteration{}
}

// LedgerFrom returns the ledger of the run in the context. Outside a run it returns
// [ErrNoRun].
func LedgerFrom(ctx context.Context) (Ledger, error) {
	r, err := runFrom(ctx)
	if err != nil || r.Ledger == nil {
		return nil, ErrNoRun
	}
	return r.Ledger, nil
}

// Notify reports in the run's stream, in the log and in a metric that something
// happened: the stream gets a CUSTOM event with this name and value. The name,
// "owner.name", must be a constant of the caller: metrics have one series for each.
func Notify(ctx context.Context, name string, value any) error {
	r, err := runFrom(ctx)
	if err != nil {
		return err
	}
	if r.Notify == nil {
		return nil
	}
	return r.Notify(ctx, name, value)
}

// LiveStates are the states of a run: the one place where they change. Reads need
// no lock; changes happen one at a time.
type LiveStates struct {
	mu  sync.Mutex
	now atomic.Pointer[States]
}

// NewLiveStates starts with the given states; nil means none.
func NewLiveStates(s *States) *LiveStates {
	l := &LiveStates{}
	l.now.Store(s)
	return l
}

// Now returns the current states.
func (l *LiveStates) Now() *States { return l.now.Load() }

func (l *LiveStates) update(f func(*States) (*States, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := f(l.now.Load())
	if err != nil {
		return err
	}
	l.now.Store(next)
	return nil
}

func liveStates(ctx context.Context) (*LiveStates, error) {
	r, err := runFrom(ctx)
	if err != nil || r.States == nil {
		return nil, ErrNoRun
	}
	return r.States, nil
}
