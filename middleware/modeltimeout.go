package middleware

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
)

// ModelTimeout bounds a model call: total is the time for all of it, idle the time until
// the next delta. Zero means no bound. The time that the reader spends on a delta is not
// idle time. A call that takes too long is cancelled through its context, which a
// [holdfast.Model] must obey, and ends with a retryable error.
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
	// tooLong and silent are the causes with which the bounds cancel.
	tooLong, silent error
	// watch cancels after idle time without a delta; nil if idle is unbounded.
	watch *time.Timer
}

func bound(ctx context.Context, total, idle time.Duration) *boundary {
	b := &boundary{total: total, idle: idle, tooLong: tookTooLong(), silent: errors.New("the model is silent")}
	stop := func() {}
	if total > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, total, b.tooLong)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.ctx = ctx
	b.release = func() { cancel(nil); stop() }
	if idle > 0 {
		b.watch = time.AfterFunc(idle, func() { cancel(b.silent) })
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

// late returns the error of a call whose time is up; nil while it is not.
func (b *boundary) late() error {
	if b.ctx.Err() == nil { // which is so for each word
		return nil
	}
	failed := &holdfast.ModelError{Kind: failure.Cut, Retryable: true, Public: "The model did not answer in time."}
	switch cause := context.Cause(b.ctx); {
	case errors.Is(cause, b.tooLong):
		failed.Err = fmt.Errorf("the model's answer was not complete after %s", b.total)
	case errors.Is(cause, b.silent):
		failed.Err = fmt.Errorf("nothing came from the model for %s", b.idle)
	default:
		return nil
	}
	return failed
}
