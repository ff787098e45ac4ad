package loop

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Retention is what the server removes by itself. What is zero is kept.
type Retention struct {
	// Every is how often a page of threads is looked at, by each process.
	Every time.Duration
	// Checkpoints is the age at which checkpoints are removed, but never a thread's
	// newest.
	Checkpoints time.Duration
	// Threads is how long an idle thread stays after its last run. Then everything of
	// it is removed together.
	Threads time.Duration
	// WarnBytes and MaxBytes bound a thread. A run on a thread with more than the
	// first says so once; with more than the second it stops, and nothing is lost.
	WarnBytes int64
	MaxBytes  int64
	// PruneBytes is the size above which a thread that does not run is pruned to its
	// newest checkpoint.
	PruneBytes int64
}

// retentionPage is how many threads one look is at: it bounds the work.
const retentionPage = 100

// keepClean looks at a page of all threads, again and again.
func (e *Engine) keepClean() {
	if e.cfg.Retention.Every <= 0 {
		return
	}
	tick := time.NewTicker(e.cfg.Retention.Every)
	defer tick.Stop()
	after := ""
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.draining:
			return
		case <-tick.C:
			after = e.cleanPage(e.ctx, after)
		}
	}
}

// cleanPage cleans a page of threads and returns where the next one begins.
func (e *Engine) cleanPage(ctx context.Context, after string) (next string) {
	heads, next, err := e.cfg.Store.Walk(ctx, after, retentionPage)
	if err != nil {
		if ctx.Err() == nil {
			e.cfg.Log.Warn("the threads could not be listed for retention", "error", err)
		}
		return ""
	}
	for i := range heads {
		if ctx.Err() != nil {
			return next
		}
		h := &heads[i]
		if h.Process != "" || e.cfg.Now().Sub(h.UpdatedAt) < e.cfg.ArchiveAfter {
			continue
		}
		done, err := e.clean(ctx, h.Key)
		switch {
		case err == nil:
			e.cfg.Observer.Cleaned(done)
		case errors.Is(err, holdfast.ErrConflict), errors.Is(err, holdfast.ErrFenced), errors.Is(err, holdfast.ErrNotFound), ctx.Err() != nil:
			// somebody works on it
		case errors.Is(err, holdfast.ErrVersionTooNew):
			// a newer server looks after it
		default:
			e.cfg.Log.Warn("retention left a thread as it is", "thread", h.Key.Thread, "error", err)
		}
	}
	return next
}

// clean does what is due for one thread.
func (e *Engine) clean(ctx context.Context, key holdfast.ThreadKey) (holdfast.Cleaned, error) {
	var done holdfast.Cleaned
	// A log that a process did not come to archive before it died.
	if err := e.archive(ctx, key); err != nil {
		return done, err
	}
	m := e.lock(key)
	defer m.Unlock()
	t, err := e.stored(ctx, key)
	if err != nil {
		return done, err
	}
	head := t.head
	now, keep := e.cfg.Now(), e.cfg.Retention
	if t.st.Phase == phaseRunning {
		return done, nil
	}
	if keep.Threads > 0 && t.st.Phase == phaseIdle && now.Sub(head.UpdatedAt) > keep.Threads {
		done.Threads = 1
		return done, e.cfg.Store.Delete(ctx, key, head.Position())
	}
	large, err := e.largerThan(ctx, key, t.st.Bytes, keep.PruneBytes)
	if err != nil {
		return done, err
	}
	aged := keep.Checkpoints > 0 && now.Sub(head.UpdatedAt) <= 2*keep.Checkpoints // later it was done before
	if !large && !aged {
		return done, nil
	}
	p := pruning{e: e, t: t}
	c, err := p.commit(ctx, func(_ int, cp *checkpoint) bool { return !large && now.Sub(cp.CreatedAt) <= keep.Checkpoints })
	if err != nil || c == nil || p.checkpoints == 0 && !large {
		return done, err
	}
	done.Checkpoints, done.Messages = p.checkpoints, len(p.forget)
	return done, e.commit(ctx, t.place(), c)
}

// largerThan reports whether a thread takes more than so many bytes; 0 is no bound.
// The store is asked only if the estimate is more.
func (e *Engine) largerThan(ctx context.Context, key holdfast.ThreadKey, estimate, bound int64) (bool, error) {
	if bound <= 0 || estimate <= bound {
		return false, nil
	}
	total, err := e.totalSize(ctx, key)
	return total > bound, err
}

func (e *Engine) totalSize(ctx context.Context, key holdfast.ThreadKey) (total int64, err error) {
	size, err := e.cfg.Store.Size(ctx, key)
	if err != nil {
		return 0, readError(err)
	}
	for _, n := range size {
		total += n
	}
	return total, nil
}

// measured compares what a thread takes with its bounds, or with MaxBytes alone once
// it was warned of. The estimate in the state is what was ever written; only when that
// is too much the store is asked.
func (e *Engine) measured(ctx context.Context, key holdfast.ThreadKey, st *state, warned bool) (over bool, err error) {
	keep := e.cfg.Retention
	bound := keep.MaxBytes
	if keep.WarnBytes > 0 && !warned && (bound <= 0 || keep.WarnBytes < bound) {
		bound = keep.WarnBytes
	}
	if bound <= 0 || st.Bytes <= bound {
		return false, nil
	}
	if st.Bytes, err = e.totalSize(ctx, key); err != nil {
		return false, err
	}
	if keep.MaxBytes > 0 && st.Bytes > keep.MaxBytes {
		return true, errThreadTooLarge(st.Bytes, keep.MaxBytes)
	}
	return keep.WarnBytes > 0 && st.Bytes > keep.WarnBytes, nil
}

func errThreadTooLarge(has, limit int64) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeThreadTooLarge, "This thread takes %d bytes, %d are allowed; nothing was lost.", has, limit).
		WithHint("Prune it (POST /threads/{thread}/prune), fork it at a message, or begin a new thread.").
		With("bytes", has).With("limit", limit)
}
