package loop

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// confirmOwner makes sure, immediately before something starts, that this process still owns
// the thread that w writes; otherwise it returns [store.ErrFenced]. A commit that the store
// has just acknowledged is proof enough, and for what has no effects a lease that was held
// since the last one. So a process that was suspended, or could not reach the store, reads
// the head before it starts anything: its runs may be another one's by now.
func confirmOwner(ctx context.Context, cfg *Config, c *contact, w *journal.Writer, key store.ThreadKey, effects bool) error {
	acked := w.Acknowledged()
	if elapsed(acked, cfg.Now()) < cfg.Lease/3 || !effects && c.heldSince(acked) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StoreTimeout)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		head, err := cfg.Store.Head(ctx, key)
		switch {
		case err == nil && head.Fence == w.Fence:
			return nil
		case err == nil:
			return store.ErrFenced
		}
		select {
		case <-ctx.Done():
			return errors.Join(store.ErrFenced, thread.StoreError(err))
		case <-time.After(pause):
		}
	}
}
