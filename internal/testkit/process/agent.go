package process

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
)

// How an agent dies with its process: its models, tools and hooks are not called any more.

// life is closed when a process dies.
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
		a.Toolsets[i] = &Toolset{Toolset: set, Wrap: func(tool holdfast.Tool) holdfast.Tool {
			return mortalTool{tool, l}
		}}
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

// Continues reports what the model itself says.
func (m mortalModel) Continues() bool {
	c, is := m.Model.(interface{ Continues() bool })
	return is && c.Continues()
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

// Toolset is a toolset whose tools are wrapped.
type Toolset struct {
	holdfast.Toolset
	Wrap func(holdfast.Tool) holdfast.Tool

	mu         sync.Mutex
	from, list []holdfast.Tool // of the last call
}

// Tools implements [holdfast.Toolset]. It returns the same list as long as the toolset does.
func (s *Toolset) Tools() []holdfast.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Toolset.Tools()
	if same := len(now) == len(s.from) && (len(now) == 0 || &now[0] == &s.from[0]); same {
		return s.list
	}
	s.from, s.list = now, slices.Clone(now)
	for i, tool := range now {
		s.list[i] = s.Wrap(tool)
	}
	return s.list
}
