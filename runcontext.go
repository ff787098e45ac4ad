package holdfast

import (
	"context"
	"encoding/json"
	"errors"
)

// RunContext is what hooks and tools reach through their context. The server makes it;
// tests may too. The states of the run and the store's ledger have contexts of their
// own, in the packages state and store.
type RunContext struct {
	// Iteration returns where the run stands; nil means the zero [Iteration].
	Iteration func() Iteration
	// Notify implements [Notify]; nil drops notices.
	Notify func(ctx context.Context, name string, value any) error
	// Keep implements [Keep] for the open call with this id; nil means that no call can
	// keep anything.
	Keep func(ctx context.Context, call string, value json.RawMessage) error
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
