package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"

	"github.com/holdfast-agents/holdfast"
)

// Panics turns a panic of a tool into a failed result and a panic of a model
// into an error, both with a text that gives nothing away. The value and the
// stack go to the log.
func Panics(log *slog.Logger) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.panics",
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (result holdfast.ToolResult, err error) {
				defer func() {
					if p := recover(); p != nil {
						value, stack := unwrap(p)
						log.ErrorContext(ctx, "panic in a tool", "tool", call.Name, "thread", call.Thread,
							"run", call.Run, "call", call.ID, "panic", value, "stack", stack)
						result = holdfast.ToolResult{Failed: true, Text: fmt.Sprintf(
							"%s failed because of a mistake in the tool itself. It may have taken effect in part.", call.Name)}
						err = nil
					}
				}()
				return next(ctx, tool, call)
			}
		},
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					guard(ctx, log, next, req, yield)
				}
			}
		},
	}
}

// guard streams a model call and ends it with an error if the model panics.
func guard(ctx context.Context, log *slog.Logger, next holdfast.ModelCall, req *holdfast.ModelRequest, yield func(holdfast.Delta, error) bool) {
	reading, stopped := false, false
	defer func() {
		if reading {
			return // the panic is the reader's, and goes on
		}
		p := recover()
		if p == nil {
			return
		}
		value, stack := unwrap(p)
		log.ErrorContext(ctx, "panic in a model", "thread", req.Thread, "run", req.Run,
			"iteration", req.Iteration, "panic", value, "stack", stack)
		if !stopped {
			yield(holdfast.Delta{}, &holdfast.ModelError{
				Public: "The model failed because of a mistake in the server.",
				Err:    errors.New("panic: " + value),
			})
		}
	}()
	for d, err := range next(ctx, req) {
		reading = true
		goOn := yield(d, err)
		reading = false
		if !goOn {
			stopped = true
			return
		}
	}
}

// caught is a panic that was moved from one goroutine to another.
type caught struct {
	value any
	stack []byte
}

// Error makes a panic that nobody recovers readable.
func (c *caught) Error() string { return fmt.Sprintf("%v\n\n%s", c.value, c.stack) }

func unwrap(p any) (value, stack string) {
	if c, ok := p.(*caught); ok {
		return fmt.Sprint(c.value), string(c.stack)
	}
	return fmt.Sprint(p), string(debug.Stack())
}
