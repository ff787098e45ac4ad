package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/routine"
)

// cutOff is how long runs may take to notice that they were cut off, and to make their last
// commit.
const cutOff = loop.LastCommit + time.Second/4

// Shutdown starts nothing new, lets every run come to the next boundary between steps, and
// returns when all have, or when ctx is done. Then it cuts off what is still in flight,
// which another process takes over, and returns an error that says so and wraps ctx's.
// Streams end when Shutdown returns. A run that does not even notice that it was cut off, such
// as one whose model ignores its context, is left behind, and the error says which.
func (e *Engine) Shutdown(ctx context.Context) error {
	runs := e.residents.drain()
	e.claims.finish(ctx)
	var err error
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			err = fmt.Errorf("runs were cut off in the middle of a step, and are recovered by another server "+
				"or at the next start: %w", ctx.Err())
		}
	}
	e.stop(loop.ErrStopped)
	last, cancel := routine.Grace(ctx, cutOff)
	defer cancel()
	err = errors.Join(err, leftOf(last, runs))
	e.ended.Do(func() { close(e.closed) })
	e.claims.release()
	if !routine.Ends(last, func() {
		e.wg.Wait()
		e.streams.Close()
		e.writers.Wait()
	}) {
		err = errors.Join(err, &routine.LeftBehind{What: "the engine"})
	}
	e.stopListening()
	retire, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(err, e.cfg.Store.Retire(retire, e.process))
}

// leftOf waits for runs that were cut off, and returns an error for those that do not end.
func leftOf(last context.Context, runs []*resident) error {
	ended := routine.Ends(last, func() {
		for _, r := range runs {
			<-r.done
		}
	})
	if ended {
		return nil
	}
	var left []error
	for _, r := range runs {
		select {
		case <-r.done:
		default:
			left = append(left, &routine.LeftBehind{What: fmt.Sprintf("run %s of thread %s", r.start.Rec.ID,
				r.start.Key.Thread)})
		}
	}
	return errors.Join(left...)
}

// over reports whether streams must end, whatever else there is to do.
func (e *Engine) over() bool {
	select {
	case <-e.closed:
		return true
	default:
		return false
	}
}
