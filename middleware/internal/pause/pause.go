// Package pause waits for a time, or for the end of a context.
package pause

import (
	"context"
	"time"
)

// For waits for d. If the context is done first, it returns the cause.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
