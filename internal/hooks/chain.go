// Package hooks puts the hooks of an agent's middleware together into one chain, and
// guards it: a panic in a hook, a tool or a model becomes an error that names the culprit
// in logs and metrics, and never ends the process. A run calls its agent's Chain around
// the run, around each model call and tool call, and before and after each iteration.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The middleware that comes first is the outermost. Hooks that wrap a step (Run, Model,
// Tool) are nested once, when the chain is made or a run begins; hooks that are called at
// a point (BeforeIteration, Batch, AfterIteration) are lists.

// Chain is the hooks of an agent's middleware. It is made once and used by all runs.
type Chain struct {
	log    *slog.Logger
	run    []holdfast.Middleware // those with a Run hook
	before []holdfast.Middleware // those with a BeforeIteration hook
	after  []holdfast.Middleware // those with an AfterIteration hook
	batch  []holdfast.Middleware // those with a Batch hook
	// CallModel calls the model through the Model hooks.
	CallModel holdfast.ModelCall
	// CallTool calls a tool through the Tool hooks.
	CallTool holdfast.ToolHandler
	// failed is called when a hook has panicked.
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

// New returns the chain of an agent. failed is called for each panic of a hook, with the
// names of the middleware and of the hook.
func New(a *holdfast.Agent, log *slog.Logger, failed func(holdfast.Iteration, string, string)) *Chain {
	c := &Chain{log: log, failed: failed}
	model := counted(repaired(told(a, asked(a.Model))))
	c.CallModel, c.CallTool = model, c.baseTool
	// The caller of the chain recovers panics of a model. If there are hooks around it, they
	// are recovered here, before they could be taken for a hook's.
	for _, m := range a.Middleware {
		if m.Model != nil {
			c.CallModel = c.guardedModel("", model)
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

// add lists the hooks of a middleware that are called at a point.
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

// Around wraps a run in the Run hooks.
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

// BeforeIteration calls the hooks in order until one returns an error.
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

// AfterIteration calls all hooks in order.
func (c *Chain) AfterIteration(ctx context.Context, it *holdfast.Iteration, done *holdfast.IterationResult) {
	for i := range c.after {
		c.callAfter(ctx, &c.after[i], it, done)
	}
}

func (c *Chain) callAfter(
	ctx context.Context, m *holdfast.Middleware, it *holdfast.Iteration, done *holdfast.IterationResult,
) {
	defer c.caught(ctx, m.Name, AfterIteration, func(*holdfast.Error) {})
	m.AfterIteration(ctx, it, done)
}

// Decide passes the batch to the Batch hooks in order until one returns an error.
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

// named returns an error that may be shown. An error that only the hook knows is wrapped
// in one that names the hook.
func named(err error, middleware, hook string) error {
	var known *holdfast.Error
	var ask *holdfast.Interrupt
	if err == nil || errors.As(err, &known) || hook == BeforeIteration && errors.As(err, &ask) {
		return err
	}
	return errMiddleware(middleware, hook).Wrap(err)
}

// errMiddleware says that a hook failed.
func errMiddleware(middleware, hook string) *holdfast.Error {
	return holdfast.Errorf(codes.MiddlewareFailed, "The middleware %s failed in its %s hook.", middleware, hook).
		WithHint("The server's log has the cause. To try again, %s.", thread.HintEmptyPost).
		With("middleware", middleware).With("hook", hook)
}

// caught recovers a panic of a hook and passes it to fail as an error. It is deferred.
func (c *Chain) caught(ctx context.Context, middleware, hook string, fail func(*holdfast.Error)) {
	if p := recover(); p != nil {
		fail(c.report(ctx, middleware, hook, p))
	}
}

// report logs a hook's panic, reports it to the observer, and returns it as an error.
func (c *Chain) report(ctx context.Context, middleware, hook string, p any) *holdfast.Error {
	at := holdfast.IterationFrom(ctx)
	c.log.ErrorContext(ctx, "panic in a middleware", "middleware", middleware, "hook", hook, "thread", at.Thread,
		"run", at.Run, "iteration", at.Number, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	c.failed(at, middleware, hook)
	return errMiddleware(middleware, hook).Wrap(fmt.Errorf("panic: %v", p))
}
