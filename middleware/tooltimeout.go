package middleware

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// tookTooLong returns the cancellation cause of a call whose time is up. Each bound has one
// of its own: a call may have several, and only one of them says how long it waited.
func tookTooLong() error { return errors.New("the call took too long") }

// ToolTimeout bounds each tool call by the tool's own timeout or, if it has none, by
// fallback; if neither is positive there is no bound. When the time is up, the call's
// context is cancelled and its result says that it took too long. A tool that ignores its
// context keeps running in stragglers until it returns; the owner of the group waits for
// it.
func ToolTimeout(fallback time.Duration, stragglers *sync.WaitGroup) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.tool_timeout",
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				limit := tool.Spec().Timeout
				if limit <= 0 {
					limit = fallback
				}
				if limit <= 0 {
					return next(ctx, tool, call)
				}
				cause := tookTooLong()
				ctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
				defer cancel()
				return await(ctx, cause, limit, call.Name, start(stragglers, func() (holdfast.ToolResult, error) {
					return next(ctx, tool, call)
				}))
			}
		},
	}
}

// returned is the outcome of a tool call.
type returned struct {
	result holdfast.ToolResult
	err    error
	panic  *caught
}

// errNoResult is the outcome of a tool that ended its goroutine.
var errNoResult = errors.New("the tool ended without a result")

func start(group *sync.WaitGroup, call func() (holdfast.ToolResult, error)) <-chan returned {
	done := make(chan returned, 1)
	group.Go(func() {
		r := returned{err: errNoResult} // until the call returns
		defer func() {
			if p := recover(); p != nil {
				r.panic = &caught{value: p, stack: debug.Stack()}
			}
			done <- r
		}()
		r.result, r.err = call()
	})
	return done
}

// await waits until the call returns or its time is up, which cancels ctx with the cause.
// It does not stop waiting when the run is cancelled: how long to wait for tools is the
// engine's decision.
func await(ctx context.Context, cause error, limit time.Duration, name string, done <-chan returned) (holdfast.ToolResult, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var r returned
	select {
	case r = <-done:
	case <-timer.C:
		return timedOut(name, limit), nil
	}
	if r.panic != nil {
		panic(r.panic) // in the goroutine of the caller, as without a timeout
	}
	var ask *holdfast.Interrupt
	if r.err != nil && !errors.As(r.err, &ask) && errors.Is(context.Cause(ctx), cause) {
		return timedOut(name, limit), nil
	}
	return r.result, r.err
}

func timedOut(name string, limit time.Duration) holdfast.ToolResult {
	return holdfast.ToolResult{Failed: true, Text: fmt.Sprintf(
		"%s did not finish within %s and was given up. It may have taken effect all the same.", name, limit)}
}

// isTimedOut reports whether a result is that of a call whose time was up. The text tells
// it, because a result has no field for it.
func isTimedOut(name string, r *holdfast.ToolResult) bool {
	like := timedOut(name, 0).Text
	before, after, _ := strings.Cut(like, time.Duration(0).String())
	return r.Failed && strings.HasPrefix(r.Text, before) && strings.HasSuffix(r.Text, after)
}

// caught is a panic on its way from one goroutine to another.
type caught struct {
	value any
	stack []byte
}

// Error returns the panic with its original stack, which is what an unrecovered panic
// prints.
func (c *caught) Error() string { return fmt.Sprintf("%v\n\n%s", c.value, c.stack) }
