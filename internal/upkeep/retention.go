package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Retention is what the server removes by itself. Each process walks through all threads
// of the store, a page at a time, and does for each what is due: it archives a log that a
// dead process left, deletes the thread, or prunes it.

// Retention is what the server removes by itself. A zero field removes nothing.
type Retention struct {
	// Every is how often each process looks at a page of threads; 0 means never.
	Every time.Duration
	// Checkpoints is the age at which checkpoints are removed, except each thread's newest.
	Checkpoints time.Duration
	// Threads is how long an idle thread stays after its last run. Then all of it is removed
	// together.
	Threads time.Duration
	// PruneBytes is the size in bytes above which a thread that does not run is pruned to its
	// newest checkpoint.
	PruneBytes int64
}

// retentionPage is how many threads are looked at at a time. It bounds the work.
const retentionPage = 100

// keepRetention looks at one page of threads after the other.
func (k *Keeper) keepRetention() {
	if k.cfg.Retention.Every <= 0 {
		return
	}
	tick := time.NewTicker(k.cfg.Retention.Every)
	defer tick.Stop()
	after := ""
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-tick.C:
			after = k.retainPage(k.ctx, after)
		}
	}
}

// retainPage does what is due for a page of threads, and returns where the next one begins.
func (k *Keeper) retainPage(ctx context.Context, after string) (next string) {
	heads, next, err := k.cfg.Store.Walk(ctx, after, retentionPage)
	if err != nil {
		if ctx.Err() == nil {
			k.cfg.Log.Warn("the threads could not be listed for retention", "error", err)
		}
		if !errors.Is(err, store.ErrUnreadable) {
			return ""
		}
	}
	for i := range heads {
		if ctx.Err() != nil {
			return next
		}
		h := &heads[i]
		damaged := h.ETag == "" // operators are told by holdfast check
		if damaged || h.Process != "" || k.cfg.Now().Sub(h.UpdatedAt) < k.cfg.ArchiveAfter {
			continue
		}
		done, err := k.retain(ctx, h.Key)
		switch {
		case err == nil:
			k.cfg.Cleaned(done)
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrNotFound), ctx.Err() != nil:
			// somebody is working on it
		case errors.Is(err, store.ErrVersionTooNew):
			// a newer server looks after it
		default:
			k.cfg.Log.Warn("retention left a thread as it is", "thread", h.Key.Thread, "error", err)
		}
	}
	return next
}

// retain does what is due for one thread.
func (k *Keeper) retain(ctx context.Context, key store.ThreadKey) (threads.Cleaned, error) {
	var done threads.Cleaned
	// Archive a log that its process did not archive before it died.
	if err := k.Archive(ctx, key); err != nil {
		return done, err
	}
	defer k.engine.Lock(key)()
	t, err := k.read.Head(ctx, key)
	if err != nil {
		return done, err
	}
	head := t.Head
	now, keep := k.cfg.Now(), k.cfg.Retention
	if t.State.Running() {
		return done, nil
	}
	if keep.Threads > 0 && t.State.Status() == threads.StatusIdle && now.Sub(head.UpdatedAt) > keep.Threads {
		done.Threads = 1
		return done, k.cfg.Store.Delete(ctx, key, head.Position())
	}
	large, err := k.largerThan(ctx, key, t.State.Bytes, keep.PruneBytes)
	if err != nil {
		return done, err
	}
	if !large {
		if aged, err := k.mayBeAged(ctx, t, now.Sub(head.UpdatedAt)); err != nil || !aged {
			return done, err
		}
	}
	p := pruning{k: k, t: t}
	c, err := p.commit(ctx, func(_ int, cp *thread.Checkpoint) bool { return !large && now.Sub(cp.CreatedAt) <= keep.Checkpoints })
	if err != nil || c == nil || p.checkpoints == 0 && !large {
		return done, err
	}
	done.Checkpoints, done.Messages = p.checkpoints, len(p.forget)
	return done, k.engine.Commit(ctx, t.Place(), c)
}

// mayBeAged reports whether a thread that has been idle for so long may have checkpoints
// to remove for their age. If all of them are that old, it is enough to know whether
// there is more than the newest: a thread that nobody uses costs one small read each
// time, whether it was pruned before or grew old before there was a limit.
func (k *Keeper) mayBeAged(ctx context.Context, t *thread.Thread, idle time.Duration) (bool, error) {
	limit := k.cfg.Retention.Checkpoints
	if limit <= 0 {
		return false, nil
	}
	if idle <= limit {
		return true, nil
	}
	newest, err := k.cfg.Store.Values(ctx, t.Key, store.KindCheckpoint, "", 2)
	return len(newest) > 1, err
}

// largerThan reports whether a thread takes more than bound bytes; 0 means no bound. The
// store is asked only if the estimate is more.
func (k *Keeper) largerThan(ctx context.Context, key store.ThreadKey, estimate, bound int64) (bool, error) {
	if bound <= 0 || estimate <= bound {
		return false, nil
	}
	total, err := k.read.Size(ctx, key)
	return total > bound, err
}
