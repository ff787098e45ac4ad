package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
)

// A failed call is attempted again after a pause that doubles each time. Every attempt has
// the same call with the same key; what an attempt did to the shared state of the thread
// is held back until it is known to be the last one.

// The failures that [Retry] retries.
const (
	// RetryOnError retries every failed call.
	RetryOnError = "error"
	// RetryOnTimeout retries only calls that took too long.
	RetryOnTimeout = "timeout"
)

// NoticeRetried is the notice of a call that needed more than one attempt: the tool, the
// number of attempts, and whether the last one succeeded.
const NoticeRetried = "holdfast.retried"

// RetryOptions are the options of [Retry].
type RetryOptions struct {
	// Tools are names of tools, or globs like "fetch_*"; empty means all tools.
	Tools []string `json:"tools,omitempty"`
	// Attempts is how many attempts a call has at most, including the first one; default 3.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the pause before the second attempt; it doubles with every further one.
	// Default 500ms.
	Backoff Duration `json:"backoff,omitempty"`
	// MaxBackoff is the longest pause; default 10s.
	MaxBackoff Duration `json:"maxBackoff,omitempty"`
	// On is what is retried: [RetryOnError] (default) or [RetryOnTimeout].
	On string `json:"on,omitempty"`
	// Jitter turns the computed pause into the real one, so that calls that failed together
	// do not come back together. The default picks between half of it and all of it.
	Jitter func(pause time.Duration) time.Duration `json:"-"`
}

func (o RetryOptions) withDefaults() RetryOptions {
	o.Attempts = cmp.Or(o.Attempts, 3)
	o.Backoff = cmp.Or(o.Backoff, Duration(500*time.Millisecond))
	o.MaxBackoff = cmp.Or(o.MaxBackoff, Duration(10*time.Second))
	o.On = cmp.Or(o.On, RetryOnError)
	if o.Jitter == nil {
		o.Jitter = func(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2+1) }
	}
	return o
}

// maxAttempts keeps a typo from calling a tool for hours.
const maxAttempts = 20

// Validate says what is wrong with the options, and what to write instead.
func (o RetryOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case slices.Contains(o.Tools, ""):
		return errors.New("tools has an empty name; write a tool's name, or a glob like fetch_*")
	case o.Attempts < 2 || o.Attempts > maxAttempts:
		return fmt.Errorf("attempts is %d; write a number from 2 to %d, which counts the first try too", o.Attempts,
			maxAttempts)
	case o.Backoff < 0 || o.MaxBackoff < o.Backoff:
		return fmt.Errorf("backoff is %s and maxBackoff is %s; write durations like 500ms and 10s, the "+
			"second not below the first", time.Duration(o.Backoff), time.Duration(o.MaxBackoff))
	case o.On != RetryOnError && o.On != RetryOnTimeout:
		return fmt.Errorf("on is %q; write %s or %s", o.On, RetryOnError, RetryOnTimeout)
	}
	return nil
}

// Retry retries failed calls of tools whose effect allows it: pure and idempotent ones,
// never those that are once or query. Every attempt gets the same call with the same key.
// Changes that a failed attempt made to the shared state of the thread are dropped, as
// with any failed call. A question, the end of the run and a result for which nothing was
// run are never retried.
//
// List it before [Timeout] to bound each attempt.
func Retry(o RetryOptions) holdfast.Middleware {
	mustBeValid("Retry", o)
	r := &retrier{o.withDefaults()}
	return holdfast.Middleware{Name: "holdfast.retry", Notices: []string{NoticeRetried}, Tool: r.tool}
}

type retrier struct{ RetryOptions }

func (r *retrier) tool(next holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		if call.Finished || !r.applies(tool, call.Name) {
			return next(ctx, tool, call)
		}
		return r.attempts(ctx, next, tool, call)
	}
}

func (r *retrier) applies(tool holdfast.Tool, name string) bool {
	switch tool.Spec().Effect {
	case "", holdfast.EffectPure, holdfast.EffectIdempotent:
	default:
		return false
	}
	return len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, func(pattern string) bool {
		return shared.Matches(pattern, name)
	})
}

// notSent reports whether a failed attempt has certainly sent nothing. Errors of tools say so with
// a method.
func notSent(err error) bool {
	var e interface{ NotSent() bool }
	return errors.As(err, &e) && e.NotSent()
}

func (r *retrier) attempts(
	ctx context.Context, next holdfast.ToolHandler, tool holdfast.Tool, call holdfast.ToolCall,
) (holdfast.ToolResult, error) {
	for n := 1; ; n++ {
		var held heldUpdates
		result, err := next(holdfast.ContextWithCall(ctx, call, held.add), tool, call)
		failed := r.failed(ctx, call.Name, &result, err)
		if failed && n < r.Attempts && r.pause(ctx, n) {
			call.Again = call.Again || !notSent(err)
			continue
		}
		if err := held.passOn(ctx); err != nil {
			return holdfast.ToolResult{}, err
		}
		if n == 1 {
			return result, err
		}
		// An error is ignored: the run is about to stop, and the result is what counts.
		_ = holdfast.Notify(ctx, NoticeRetried, retriedNotice{Tool: call.Name, Attempts: n, Helped: !failed})
		if failed {
			return counted(result, err, n)
		}
		return result, err
	}
}

type retriedNotice struct {
	Tool     string `json:"tool"`
	Attempts int    `json:"attempts"`
	Helped   bool   `json:"helped"`
}

// failed reports whether an attempt failed in a way that another one may not.
func (r *retrier) failed(ctx context.Context, name string, result *holdfast.ToolResult, err error) bool {
	var ask *holdfast.Interrupt
	var end *holdfast.EndRun
	switch {
	case ctx.Err() != nil || errors.Is(err, holdfast.ErrArguments) || errors.As(err, &ask) || errors.As(err, &end):
		return false
	case err != nil:
		return r.On == RetryOnError || errors.Is(err, context.DeadlineExceeded)
	case !result.Failed || result.NotRun:
		return false
	}
	return r.On == RetryOnError || isTimedOut(name, result)
}

// pause waits before the next attempt. It returns false if there is no time for one,
// because the run is cancelled or the call would reach its deadline first.
func (r *retrier) pause(ctx context.Context, n int) bool {
	d := time.Duration(r.Backoff)
	for range n - 1 {
		d = min(2*d, time.Duration(r.MaxBackoff))
	}
	d = r.Jitter(d)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	return shared.Pause(ctx, d) == nil
}

// counted adds the number of attempts to what the model reads.
func counted(result holdfast.ToolResult, err error, n int) (holdfast.ToolResult, error) {
	if err != nil {
		return result, fmt.Errorf("%w (tried %d times)", err, n)
	}
	note := fmt.Sprintf("[It was tried %d times.]", n)
	if len(result.Parts) > 0 {
		result.Parts = append(slices.Clone(result.Parts), holdfast.Part{Type: holdfast.PartText, Text: note})
		return result, nil
	}
	result.Text += "\n" + note
	return result, nil
}

// heldUpdates are the changes to the shared state that one attempt has asked for. They are
// passed on if it is the last attempt. One that took too long may still be running and add
// more, which are dropped.
type heldUpdates struct {
	mu   sync.Mutex
	list []holdfast.StateUpdate
}

func (h *heldUpdates) add(f holdfast.StateUpdate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, f)
}

func (h *heldUpdates) passOn(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.list {
		if err := holdfast.UpdateState(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
