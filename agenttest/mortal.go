package agenttest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// How a process dies in a test: everything that it uses (agent, store, hooks) is
// bound to its life. After its death, code that is still running can no longer change
// anything that a test sees.

// life is closed when a process dies. Its goroutines cannot be stopped as a kill
// would, but they can be kept from doing anything visible: they write nothing and
// call nothing that belongs to the test.
type life chan struct{}

// over reports whether the process is dead.
func (l life) over() bool {
	select {
	case <-l:
		return true
	default:
		return false
	}
}

// goesOn returns at once while the process is alive. In a dead one it waits until the
// caller's context is done.
func (l life) goesOn(ctx context.Context) error {
	if !l.over() {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// agent returns the agent with all its parts bound to the process.
func (l life) agent(a holdfast.Agent) holdfast.Agent {
	if a.Model != nil {
		a.Model = mortalModel{a.Model, l}
	}
	a.Fallbacks = slices.Clone(a.Fallbacks)
	for i, m := range a.Fallbacks {
		a.Fallbacks[i] = mortalModel{m, l}
	}
	a.Tools = slices.Clone(a.Tools)
	for i, t := range a.Tools {
		a.Tools[i] = mortalTool{t, l}
	}
	a.Toolsets = slices.Clone(a.Toolsets)
	for i, set := range a.Toolsets {
		a.Toolsets[i] = &wrappedToolset{
			Toolset: set,
			wrap:    func(tool holdfast.Tool) holdfast.Tool { return mortalTool{tool, l} },
		}
	}
	a.Middleware = slices.Clone(a.Middleware)
	for i, m := range a.Middleware {
		m.Tools = slices.Clone(m.Tools)
		for n, t := range m.Tools {
			m.Tools[n] = mortalTool{t, l}
		}
		a.Middleware[i] = l.wrapping(l.watching(m))
	}
	return a
}

// watching binds the hooks that are called one after another.
func (l life) watching(m holdfast.Middleware) holdfast.Middleware {
	if f := m.BeforeIteration; f != nil {
		m.BeforeIteration = func(ctx context.Context, it *holdfast.Iteration) error {
			if err := l.goesOn(ctx); err != nil {
				return err
			}
			return f(ctx, it)
		}
	}
	if f := m.AfterIteration; f != nil {
		m.AfterIteration = func(ctx context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
			if l.goesOn(ctx) == nil {
				f(ctx, it, done)
			}
		}
	}
	if f := m.Batch; f != nil {
		m.Batch = func(ctx context.Context, b *holdfast.Batch) error {
			if err := l.goesOn(ctx); err != nil {
				return err
			}
			return f(ctx, b)
		}
	}
	return m
}

// wrapping binds the hooks that wrap something.
func (l life) wrapping(m holdfast.Middleware) holdfast.Middleware {
	if f := m.Run; f != nil {
		m.Run = func(next holdfast.RunCall) holdfast.RunCall {
			run := f(next)
			return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
				if err := l.goesOn(ctx); err != nil {
					return "", err
				}
				return run(ctx, it)
			}
		}
	}
	if f := m.Model; f != nil {
		m.Model = func(next holdfast.ModelCall) holdfast.ModelCall {
			return mortalModel{holdfast.ModelFunc(f(next)), l}.Stream
		}
	}
	if f := m.Tool; f != nil {
		m.Tool = func(next holdfast.ToolHandler) holdfast.ToolHandler {
			run := f(next)
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if err := l.goesOn(ctx); err != nil {
					return holdfast.ToolResult{}, err
				}
				return run(ctx, tool, call)
			}
		}
	}
	return m
}

type mortalModel struct {
	holdfast.Model
	life life
}

// ModelName says whose model it is, if that is known.
func (m mortalModel) ModelName() (provider, model string) {
	if named, ok := m.Model.(interface{ ModelName() (string, string) }); ok {
		return named.ModelName()
	}
	return "", ""
}

func (m mortalModel) Stream(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		if err := m.life.goesOn(ctx); err != nil {
			yield(holdfast.Delta{}, err)
			return
		}
		m.Model.Stream(ctx, req)(yield)
	}
}

type mortalTool struct {
	holdfast.Tool
	life life
}

func (t mortalTool) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	if err := t.life.goesOn(ctx); err != nil {
		return holdfast.ToolResult{}, err
	}
	return t.Tool.Call(ctx, call)
}

// Spec returns the tool's, whose functions are bound to the process too.
func (t mortalTool) Spec() holdfast.ToolSpec {
	spec := t.Tool.Spec()
	if query := spec.Query; query != nil {
		spec.Query = func(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
			if err := t.life.goesOn(ctx); err != nil {
				return holdfast.ToolResult{}, holdfast.FateUnknown, err
			}
			return query(ctx, call)
		}
	}
	if spec.Outside != nil && spec.Outside.Deliver != nil {
		outside, deliver := *spec.Outside, spec.Outside.Deliver
		outside.Deliver = func(ctx context.Context, call holdfast.OutsideCall) error {
			if err := t.life.goesOn(ctx); err != nil {
				return err
			}
			return deliver(ctx, call)
		}
		spec.Outside = &outside
	}
	return spec
}

// mortal is a store as one process sees it.
type mortal struct {
	store.Store
	life        life
	begun, done atomic.Int64 // commits
}

// lull is how long a run must commit nothing before it can be assumed to have passed
// everything to the store: longer than a run holds anything back to batch it.
const lull = 50 * time.Millisecond

// rest returns when there is a lull, or after a second, because a run may never
// pause.
func (m *mortal) rest() {
	for range time.Second / lull {
		before := m.begun.Load()
		time.Sleep(lull)
		if m.begun.Load() == before && m.done.Load() == before {
			return
		}
	}
}

// errDead is what the store returns to a dead process. A run takes it for the loss of
// its thread, so it ends at once instead of trying again.
var errDead = fmt.Errorf("the process is dead: %w", store.ErrFenced)

func (m *mortal) Commit(ctx context.Context, c *store.Commit) error {
	if m.life.over() {
		return errDead
	}
	m.begun.Add(1)
	defer m.done.Add(1)
	return m.Store.Commit(ctx, c)
}

func (m *mortal) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	if m.life.over() {
		return errDead
	}
	return m.Store.Post(ctx, key, item)
}

func (m *mortal) Delete(ctx context.Context, key store.ThreadKey, at store.Position) error {
	if m.life.over() {
		return errDead
	}
	return m.Store.Delete(ctx, key, at)
}

func (m *mortal) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if m.life.over() {
		return errDead
	}
	return m.Store.Announce(ctx, process, ttl)
}

func (m *mortal) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	if m.life.over() {
		return errDead
	}
	return m.Store.HandOver(ctx, process, key)
}

func (m *mortal) Reserve(ctx context.Context, r *store.Reservation) error {
	if m.life.over() {
		return errDead
	}
	return m.Store.Reserve(ctx, r)
}

func (m *mortal) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if m.life.over() {
		return errDead
	}
	return m.Store.Settle(ctx, tenant, id, actual)
}

// Close does nothing: the next process uses the store. Retire is passed through, so
// that the next process does not have to wait for the lease.
func (m *mortal) Close() error { return nil }
