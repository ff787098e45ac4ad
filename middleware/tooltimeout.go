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

// errTimeout is the cause with which a call that took too long is cancelled.
var errTimeout = errors.New("the call took too long")

// ToolTimeout bounds one tool call by the tool's own timeout or by fallback;
// without a positive one there is no bound. A call that takes too long is
// finished: its result says so. The call's context is cancelled then, and a tool
// that ignores it is given up; it is a straggler until it returns, and whoever
// owns the group waits for it.
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
				ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
				defer cancel()
				return await(ctx, limit, call.Name, start(stragglers, func() (holdfast.ToolResult, error) {
					return next(ctx, tool, call)
				}))
			}
		},
	}
}

// returned is what a tool call came to.
type returned struct {
	result holdfast.ToolResult
	err    error
	panic  *caught
}

// errNoResult is what comes of a tool that ends its goroutine.
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

// await waits for the call or for its limit. A run that is cancelled meanwhile
// does not end the wait: the engine decides how long it waits for its tools.
func await(ctx context.Context, limit time.Duration, name string, done <-chan returned) (holdfast.ToolResult, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var r returned
	select {
	case r = <-done:
	case <-timer.C:
		return timedOut(name, limit), nil
	}
	if r.panic != nil {
		panic(r.panic) // where it would have been without this goroutine
	}
	var ask *holdfast.Interrupt
	if r.err != nil && !errors.As(r.err, &ask) && errors.Is(context.Cause(ctx), errTimeout) {
		return timedOut(name, limit), nil
	}
	return r.result, r.err
}

func timedOut(name string, limit time.Duration) holdfast.ToolResult {
	return holdfast.ToolResult{Failed: true, Text: fmt.Sprintf(
		"%s did not finish within %s and was given up. It may have taken effect all the same.", name, limit)}
}

// isTimedOut reports whether a result is that of a call which [ToolTimeout] has
// given up. It is read from the text, because a result has no word for it.
func isTimedOut(name string, r *holdfast.ToolResult) bool {
	like := timedOut(name, 0).Text
	before, after, _ := strings.Cut(like, time.Duration(0).String())
	return r.Failed && strings.HasPrefix(r.Text, before) && strings.HasSuffix(r.Text, after)
}

// caught is a panic that was moved from one goroutine to another.
type caught struct {
	value any
	stack []byte
}

// Error makes a panic that nobody recovers readable.
func (c *caught) Error() string { return fmt.Sprintf("%v\n\n%s", c.value, c.stack) }
