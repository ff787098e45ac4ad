package routine

import (
	"context"
	"time"
)

// LeftBehind is the error of an end that did not wait any longer for something.
type LeftBehind struct{ What string }

// Error implements error.
func (e *LeftBehind) Error() string { return e.What + " has not ended, and was left behind" }

// Left returns what an error says was left behind.
func Left(err error) []string {
	if one, is := err.(*LeftBehind); is {
		return []string{one.What}
	}
	var left []string
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			left = append(left, Left(inner)...)
		}
	case interface{ Unwrap() error }:
		left = Left(e.Unwrap())
	}
	return left
}

// Grace returns a context that ends so long after ctx has ended.
func Grace(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-last.Done():
		}
	})
	return last, func() {
		stop()
		cancel()
	}
}

// Ends calls f, and reports whether it has returned before ctx ended, or at once. If not, f
// goes on: the caller is about to end the process, or says that something was left behind.
func Ends(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	t := time.NewTimer(atOnce)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// atOnce is how long something may take that has nothing to wait for.
const atOnce = 100 * time.Millisecond
