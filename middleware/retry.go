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
	"github.com/holdfast-agents/holdfast/middleware/internal/glob"
	"github.com/holdfast-agents/holdfast/middleware/internal/pause"
)

// What [Retry] tries again.
const (
	// RetryOnError: a failed call, whatever the reason.
	RetryOnError = "error"
	// RetryOnTimeout: only a call that has run into a timeout.
	RetryOnTimeout = "timeout"
)

// NoticeRetried says that a call needed more than one try: the tool, how many
// tries there were, and whether the last one helped.
const NoticeRetried = "holdfast.retried"

// RetryOptions are the options of [Retry].
type RetryOptions struct {
	// Tools are the names of the tools, or globs like "fetch_*"; none is all tools.
	Tools []string `json:"tools,omitempty"`
	// Attempts is how many tries a call has at most, the first one included;
	// default 3.
	Attempts int `json:"attempts,omitempty"`
	// Backoff is the pause before the second try; it doubles with each further one,
	// up to MaxBackoff. Defaults 500ms and 10s.
	Backoff    Duration `json:"backoff,omitempty"`
	MaxBackoff Duration `json:"maxBackoff,omitempty"`
	// On is what is tried again: RetryOnError, the default, or RetryOnTimeout.
	On string `json:"on,omitempty"`
	// Jitter makes a pause of the computed one, so that calls that failed together do
	// not come back together. The default takes from half of it to all of it.
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

// maxAttempts keeps a typing mistake from calling a tool for hours.
const maxAttempts = 20

// Validate says what is wrong with the options, and what to write instead.
func (o RetryOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case slices.Contains(o.Tools, ""):
		return errors.New("tools has an empty name; write a tool's name, or a glob like fetch_*")
	case o.Attempts < 2 || o.Attempts > maxAttempts:
		return fmt.Errorf("attempts is %d; write a number from 2 to %d, which counts the first try too", o.Attempts, maxAttempts)
	case o.Backoff < 0 || o.MaxBackoff < o.Backoff:
		return fmt.Errorf("backoff is %s and maxBackoff is %s; write durations like 500ms and 10s, the second not below the first",
			time.Duration(o.Backoff), time.Duration(o.MaxBackoff))
	case o.On != RetryOnError && o.On != RetryOnTimeout:
		return fmt.Errorf("on is %q; write %s or %s", o.On, RetryOnError, RetryOnTimeout)
	}
	return nil
}

// Retry calls a tool again that has failed, if its effect allows it: a pure or
// idempotent tool, never one that is once or query. Each try gets the same call
// with the same key. What a failed try did to the thread's shared state is
// forgotten, as it is with any failed call. A question, the end of a run and a
// result for which nothing was run are never tried again.
//
// List it before [Timeout], so that each try has its own time.
func Retry(o RetryOptions) holdfast.Middleware {
	mustBeValid("Retry", o)
	o = o.withDefaults()
	return holdfast.Middleware{
		Name: "holdfast.retry",
		Tool: func(next holdfast.ToolHandler) holdfast.ToolHandler {
			return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if !o.applies(tool, call.Name) {
					return next(ctx, tool, call)
				}
				return o.tries(ctx, next, tool, call)
			}
		},
	}
}

func (o *RetryOptions) applies(tool holdfast.Tool, name string) bool {
	switch tool.Spec().Effect {
	case "", holdfast.EffectPure, holdfast.EffectIdempotent:
	default:
		return false
	}
	return len(o.Tools) == 0 || slices.ContainsFunc(o.Tools, func(pattern string) bool { return glob.Match(pattern, name) })
}

func (o *RetryOptions) tries(ctx context.Context, next holdfast.ToolHandler, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	for n := 1; ; n++ {
		var held heldUpdates
		result, err := next(holdfast.ContextWithCall(ctx, call, held.add), tool, call)
		failed := o.failed(ctx, call.Name, &result, err)
		if failed && n < o.Attempts && o.pause(ctx, n) {
			continue
		}
		if err := held.passOn(ctx); err != nil {
			return holdfast.ToolResult{}, err
		}
		if n == 1 {
			return result, err
		}
		// Nobody is told if the run is about to be left; the result is what counts.
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

// failed reports whether a try came to something that another one may mend.
func (o *RetryOptions) failed(ctx context.Context, name string, result *holdfast.ToolResult, err error) bool {
	var ask *holdfast.Interrupt
	var end *holdfast.EndRun
	switch {
	case ctx.Err() != nil || errors.Is(err, holdfast.ErrArguments) || errors.As(err, &ask) || errors.As(err, &end):
		return false
	case err != nil:
		return o.On == RetryOnError || errors.Is(err, context.DeadlineExceeded)
	case !result.Failed || result.NotRun:
		return false
	}
	return o.On == RetryOnError || isTimedOut(name, result)
}

// pause waits before the next try. It returns false if there is no time for one:
// the run is cancelled, or the call's own time would be over first.
func (o *RetryOptions) pause(ctx context.Context, n int) bool {
	d := time.Duration(o.Backoff)
	for range n - 1 {
		d = min(2*d, time.Duration(o.MaxBackoff))
	}
	d = o.Jitter(d)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	return pause.For(ctx, d) == nil
}

// counted says in what the model reads how many tries there were.
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

// heldUpdates are the changes of the shared state that one try has asked for. They
// are passed on when it is the one that counts; a try that was given up may go on
// and add some, which nobody takes.
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
