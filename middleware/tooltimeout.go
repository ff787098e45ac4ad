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

// The bound on a tool call. A tool cannot be stopped, only told to stop, so a call whose time
// is up is left behind in a group that somebody waits for.

// tookTooLong returns the cancellation cause of a call whose time is up. Each bound has one
// of its own: a call may have several, and only one of them says how long it waited.
func tookTooLong() error { return errors.New("the call took too long") }

// ToolTimeout bounds each tool call by the tool's own timeout or, if it has none, by
// fallback; if neither is positive there is no bound. When the time is up, the call's
// context is cancelled and its result says that it took too long. A call of a once or query
// tool may have taken effect by then, so it is in doubt: see [holdfast.ErrOutcomeUnknown]. A
// tool that ignores its context keeps running in stragglers until it returns; the owner of
// the group waits for it.
func ToolTimeout(fallback time.Duration, stragglers *sync.WaitGroup) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.tool_timeout",
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				b := toolBoundOf(tool.Spec(), fallback)
				if b.limit <= 0 {
					return next(ctx, tool, call)
				}
				ctx, cancel := context.WithTimeoutCause(ctx, b.limit, b.cause)
				defer cancel()
				return b.await(ctx, call.Name, start(stragglers, func() (holdfast.ToolResult, error) {
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

// toolBound is how long a call may take, and what it means if it takes longer.
type toolBound struct {
	limit time.Duration
	cause error // of the end of the call's context
	// unrepeatable means that the call must not be made twice. A contract's may be: the time
	// is that of handing it out.
	unrepeatable bool
}

func toolBoundOf(spec holdfast.ToolSpec, fallback time.Duration) toolBound {
	b := toolBound{limit: spec.Timeout, cause: tookTooLong()}
	if b.limit <= 0 {
		b.limit = fallback
	}
	b.unrepeatable = spec.Outside == nil && (spec.Effect == holdfast.EffectOnce || spec.Effect == holdfast.EffectQuery)
	return b
}

// await waits until the call returns or its time is up, which cancels ctx with the cause.
// It does not stop waiting when the run is cancelled: how long to wait for tools is the
// engine's decision.
func (b toolBound) await(ctx context.Context, name string, done <-chan returned) (holdfast.ToolResult, error) {
	timer := time.NewTimer(b.limit)
	defer timer.Stop()
	var r returned
	select {
	case r = <-done:
	case <-timer.C:
		<-ctx.Done() // by itself, and now: the caller's cancel would give it another cause
		return b.timeUp(name)
	}
	if r.panic != nil {
		panic(r.panic) // in the goroutine of the caller, as without a timeout
	}
	if r.err != nil && !saysItself(r.err) && errors.Is(context.Cause(ctx), b.cause) {
		return b.timeUp(name)
	}
	return r.result, r.err
}

// saysItself reports whether an error means the same whenever a tool returns it.
func saysItself(err error) bool {
	var ask *holdfast.Interrupt
	var end *holdfast.EndRun
	return errors.As(err, &ask) || errors.As(err, &end) || errors.Is(err, holdfast.ErrOutcomeUnknown) ||
		errors.Is(err, holdfast.ErrArguments)
}

// timeUp returns what comes of a call whose time is up.
func (b toolBound) timeUp(name string) (holdfast.ToolResult, error) {
	if b.unrepeatable {
		return holdfast.ToolResult{}, fmt.Errorf("%s did not finish within %s and was given up: %w", name, b.limit,
			holdfast.ErrOutcomeUnknown)
	}
	return timedOut(name, b.limit), nil
}

func timedOut(name string, limit time.Duration) holdfast.ToolResult {
	return holdfast.ToolResult{Failed: true,
		Text: fmt.Sprintf("%s did not finish within %s and was given up. It may still have taken effect.", name, limit)}
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
