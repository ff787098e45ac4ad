package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
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

// ModelTimeout bounds a model call: total is for all of it, idle for the time
// until the next delta; zero is no bound. The time that the reader takes with a
// delta is not idle time. A call that takes too long is cancelled through its
// context, which [holdfast.Model] must obey, and ends with a retryable error.
func ModelTimeout(total, idle time.Duration) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.model_timeout",
		Model: func(next holdfast.ModelCall) holdfast.ModelCall {
			return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(yield func(holdfast.Delta, error) bool) {
					b := bound(ctx, total, idle)
					defer b.release()
					b.stream(next(b.ctx, req), yield)
				}
			}
		},
	}
}

// boundary is the context of one model call, cancelled when a bound is reached.
type boundary struct {
	ctx     context.Context
	release func()
	total   time.Duration
	idle    time.Duration
	// watch cancels when nothing has come for the idle time; nil without one.
	watch *time.Timer
}

var errIdle = errors.New("the model is silent")

func bound(ctx context.Context, total, idle time.Duration) *boundary {
	b := &boundary{total: total, idle: idle}
	stop := func() {}
	if total > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, total, errTimeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.ctx = ctx
	b.release = func() { cancel(nil); stop() }
	if idle > 0 {
		b.watch = time.AfterFunc(idle, func() { cancel(errIdle) })
		b.release = func() { b.watch.Stop(); cancel(nil); stop() }
	}
	return b
}

func (b *boundary) stream(deltas iter.Seq2[holdfast.Delta, error], yield func(holdfast.Delta, error) bool) {
	for d, err := range deltas {
		if b.watch != nil {
			b.watch.Stop()
		}
		if late := b.late(); late != nil {
			yield(holdfast.Delta{}, late)
			return
		}
		if !yield(d, err) || err != nil || d.Finish != "" {
			return
		}
		if b.watch != nil {
			b.watch.Reset(b.idle)
		}
	}
	if late := b.late(); late != nil {
		yield(holdfast.Delta{}, late)
	}
}

// late returns the error of a call that reached one of its bounds.
func (b *boundary) late() error {
	failed := &holdfast.ModelError{Retryable: true, Public: "The model did not answer in time."}
	switch cause := context.Cause(b.ctx); {
	case errors.Is(cause, errTimeout):
		failed.Err = fmt.Errorf("the model's answer was not complete after %s", b.total)
	case errors.Is(cause, errIdle):
		failed.Err = fmt.Errorf("nothing came from the model for %s", b.idle)
	default:
		return nil
	}
	return failed
}

// caught is a panic that was moved from one goroutine to another.
type caught struct {
	value any
	stack []byte
}

// Error makes a panic that nobody recovers readable.
func (c *caught) Error() string { return fmt.Sprintf("%v\n\n%s", c.value, c.stack) }
