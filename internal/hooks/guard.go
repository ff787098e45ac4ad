package hooks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/secrets"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Panics of tools and models, and of the hooks around them. A tool that panics has failed,
// and the model reads that; a model that panics ends the model call with an error; a hook
// that panics ends the run.

// baseTool calls the tool. A panic in it is the tool's own mistake: the model reads that it
// failed. The credentials of the tool are taken out of its result.
func (c *Chain) baseTool(
	ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall,
) (result holdfast.ToolResult, err error) {
	ctx, given := secrets.Collect(ctx)
	defer func() {
		if p := recover(); p != nil {
			result, err = c.ToolPanicked(ctx, call, given.Clean(fmt.Sprint(p))), nil
		}
	}()
	// A hook may have changed the call: removed its answer, for instance. And one that
	// makes it again does not know what it has kept meanwhile.
	ctx = holdfast.ContextWithCall(ctx, call, nil)
	if err := mayStart(ctx); err != nil {
		return result, err
	}
	result, err = tool.Call(ctx, holdfast.CallFrom(ctx))
	return withoutSecrets(given, result, err)
}

// withoutSecrets takes the credentials of a call out of what it returns: a service may repeat
// what it was sent.
func withoutSecrets(given *secrets.List, result holdfast.ToolResult, err error) (holdfast.ToolResult, error) {
	result.Text = given.Clean(result.Text)
	for i := range result.Parts {
		if text := given.Clean(result.Parts[i].Text); text != result.Parts[i].Text {
			result.Parts = slices.Clone(result.Parts)
			result.Parts[i].Text = text
		}
	}
	if err == nil || given.Clean(err.Error()) == err.Error() {
		return result, err
	}
	var public *holdfast.Error
	if errors.As(err, &public) {
		own := *public
		own.Message, own.Hint, own.Err = given.Clean(own.Message), given.Clean(own.Hint), &cleanError{
			err,
			given.Clean(err.Error()),
		}
		return result, &own
	}
	return result, &cleanError{err, given.Clean(err.Error())}
}

// cleanError is an error with another text.
type cleanError struct {
	error
	text string
}

// Error returns the text.
func (e *cleanError) Error() string { return e.text }

// Unwrap returns the error.
func (e *cleanError) Unwrap() error { return e.error }

// ToolPanicked logs the panic p of a tool and returns the result that the model reads.
func (c *Chain) ToolPanicked(ctx context.Context, call holdfast.ToolCall, p any) holdfast.ToolResult {
	c.log.ErrorContext(ctx, "panic in a tool", "tool", call.Name, "thread", call.Thread, "run", call.Run, "call",
		call.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return holdfast.ToolResult{Text: fmt.Sprintf(thread.TextPanicked, call.Name), Failed: true}
}

// guardedTool ends the run with an error if the hook panics.
func (c *Chain) guardedTool(name string, hook holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (result holdfast.ToolResult,
		err error) {
		defer c.caught(ctx, name, Tool, func(e *holdfast.Error) { err = &holdfast.EndRun{Err: e} })
		return hook(ctx, tool, call)
	}
}

// guardedModel ends a model call with an error if what it wraps panics: a hook, or the
// model itself if name is empty.
func (c *Chain) guardedModel(name string, next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			g := modelGuard{Chain: c, ctx: ctx, name: name}
			defer g.recovered(yield)
			for d, err := range next(ctx, req) {
				g.reading = true
				goOn := yield(d, err)
				g.reading = false
				if !goOn {
					g.stopped = true
					return
				}
			}
		}
	}
}

// modelGuard tells the panics of a model call from those of its reader, which are passed
// on.
type modelGuard struct {
	*Chain
	ctx              context.Context
	name             string
	reading, stopped bool
}

// recovered turns a panic of the model call into its last error. It is deferred.
func (g *modelGuard) recovered(yield func(holdfast.Delta, error) bool) {
	if g.reading {
		return
	}
	p := recover()
	if p == nil {
		return
	}
	var failure error
	if g.name != "" {
		failure = g.report(g.ctx, g.name, Model, p)
	} else {
		failure = g.ModelPanicked(g.ctx, p)
	}
	if !g.stopped {
		yield(holdfast.Delta{}, failure)
	}
}

// ModelPanicked logs the panic p of a model and returns it as the call's error.
func (c *Chain) ModelPanicked(ctx context.Context, p any) error {
	at := holdfast.IterationFrom(ctx)
	c.log.ErrorContext(ctx, "panic in a model", "thread", at.Thread, "run", at.Run, "iteration", at.Number, "panic",
		fmt.Sprint(p), "stack", string(debug.Stack()))
	return &holdfast.ModelError{
		Public: "The model failed because of a mistake in the server.",
		Err:    fmt.Errorf("panic: %v", p),
	}
}
