package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Chain is the hooks of an agent's middleware, put together once. The first
// middleware is the outermost.
type Chain struct {
	log       *slog.Logger
	run       []holdfast.Middleware // those with a Run hook
	before    []holdfast.Middleware
	after     []holdfast.Middleware
	batch     []holdfast.Middleware
	CallModel holdfast.ModelCall
	CallTool  holdfast.ToolHandler
	// failed is told of a hook that has panicked.
	failed func(at holdfast.Iteration, middleware, hook string)
}

// The hooks, as logs and metrics name them.
const (
	Run             = "run"
	BeforeIteration = "before_iteration"
	AfterIteration  = "after_iteration"
	Batch           = "batch"
	Model           = "model"
	Tool            = "tool"
)

func New(a *holdfast.Agent, log *slog.Logger, failed func(holdfast.Iteration, string, string)) *Chain {
	c := &Chain{log: log, failed: failed}
	c.CallModel = repaired(a.Model.Stream)
	c.CallTool = func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		return tool.Call(ctx, call)
	}
	// Whoever calls the chain recovers panics. Within hooks, those of a tool and a
	// model are recovered before they could be taken for a hook's.
	for _, m := range a.Middleware {
		if m.Model != nil {
			c.CallModel = c.guardedModel("", repaired(a.Model.Stream))
		}
		if m.Tool != nil {
			c.CallTool = c.baseTool
		}
	}
	for i := len(a.Middleware) - 1; i >= 0; i-- {
		m := a.Middleware[i]
		if m.Model != nil {
			c.CallModel = c.guardedModel(m.Name, m.Model(c.CallModel))
		}
		if m.Tool != nil {
			c.CallTool = c.guardedTool(m.Name, m.Tool(c.CallTool))
		}
	}
	for _, m := range a.Middleware {
		c.add(m)
	}
	return c
}

func (c *Chain) add(m holdfast.Middleware) {
	if m.Run != nil {
		c.run = append(c.run, m)
	}
	if m.BeforeIteration != nil {
		c.before = append(c.before, m)
	}
	if m.AfterIteration != nil {
		c.after = append(c.after, m)
	}
	if m.Batch != nil {
		c.batch = append(c.batch, m)
	}
}

// Around wraps a run in its hooks.
func (c *Chain) Around(next holdfast.RunCall) holdfast.RunCall {
	for i := len(c.run) - 1; i >= 0; i-- {
		name, hook := c.run[i].Name, c.run[i].Run(next)
		next = func(ctx context.Context, it *holdfast.Iteration) (outcome string, err error) {
			defer c.caught(ctx, name, Run, func(e *holdfast.Error) { err = e })
			return hook(ctx, it)
		}
	}
	return next
}

// BeforeIteration calls the hooks in their order, until one returns an error.
func (c *Chain) BeforeIteration(ctx context.Context, it *holdfast.Iteration) error {
	for i := range c.before {
		if err := c.callBefore(ctx, &c.before[i], it); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chain) callBefore(ctx context.Context, m *holdfast.Middleware, it *holdfast.Iteration) (err error) {
	defer c.caught(ctx, m.Name, BeforeIteration, func(e *holdfast.Error) { err = e })
	return named(m.BeforeIteration(ctx, it), m.Name, BeforeIteration)
}

// Decides reports whether there is a Batch hook.
func (c *Chain) Decides() bool { return len(c.batch) > 0 }

// Closes reports whether there is an AfterIteration hook.
func (c *Chain) Closes() bool { return len(c.after) > 0 }

// AfterIteration calls the hooks in their order, all of them.
func (c *Chain) AfterIteration(ctx context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
	for i := range c.after {
		c.callAfter(ctx, &c.after[i], it, done)
	}
}

func (c *Chain) callAfter(ctx context.Context, m *holdfast.Middleware, it *holdfast.Iteration, done *holdfast.IterationResult) {
	defer c.caught(ctx, m.Name, AfterIteration, func(*holdfast.Error) {})
	m.AfterIteration(ctx, it, done)
}

// Decide shows the batch to the hooks in their order, until one returns an error.
func (c *Chain) Decide(ctx context.Context, b *holdfast.Batch) error {
	for i := range c.batch {
		if err := c.callBatch(ctx, &c.batch[i], b); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chain) callBatch(ctx context.Context, m *holdfast.Middleware, b *holdfast.Batch) (err error) {
	defer c.caught(ctx, m.Name, Batch, func(e *holdfast.Error) { err = e })
	return named(m.Batch(ctx, b), m.Name, Batch)
}

// named makes an error that a caller may read of one that only the hook knows.
func named(err error, middleware, hook string) error {
	var known *holdfast.Error
	var ask *holdfast.Interrupt
	if err == nil || errors.As(err, &known) || hook == BeforeIteration && errors.As(err, &ask) {
		return err
	}
	return errMiddleware(middleware, hook).Wrap(err)
}

func errMiddleware(middleware, hook string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeMiddlewareFailed, "The middleware %s failed in its %s hook.", middleware, hook).
		WithHint("The server's log has the cause. To try again, %s.", thread.HintEmptyPost).With("middleware", middleware).With("hook", hook)
}

// caught recovers a panic of a hook; it is deferred.
func (c *Chain) caught(ctx context.Context, middleware, hook string, fail func(*holdfast.Error)) {
	if p := recover(); p != nil {
		fail(c.report(ctx, middleware, hook, p))
	}
}

// report logs a hook's panic and counts it.
func (c *Chain) report(ctx context.Context, middleware, hook string, p any) *holdfast.Error {
	at := holdfast.IterationFrom(ctx)
	c.log.ErrorContext(ctx, "panic in a middleware", "middleware", middleware, "hook", hook, "thread", at.Thread, "run", at.Run,
		"iteration", at.Number, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	c.failed(at, middleware, hook)
	return errMiddleware(middleware, hook).Wrap(fmt.Errorf("panic: %v", p))
}
