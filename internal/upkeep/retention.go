package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Retention is what the server removes by itself. Each process walks through all threads
// of the store, a page at a time, and does for each what is due: it archives a log that a
// dead process left, goes on with a thread whose calls from outside have ended, deletes the
// thread, or prunes it.

// Retention is what the server removes by itself. A zero field removes nothing.
type Retention struct {
	// Every is how often each process looks at a page of threads; 0 means never.
	Every time.Duration
	// Due is how often one process that is alone looks for threads for which something is due
	// now; 0 means never. With more processes, each looks less often.
	Due time.Duration
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
	w := walk{k: k}
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-tick.C:
			if err := routine.Caught(func() error { w.page(k.ctx); return nil }); err != nil {
				k.cfg.Log.Error("retention begins again with the first thread", "error", err)
				w.after = ""
			}
		}
	}
}

// walk is how far retention has come with the threads of the store.
type walk struct {
	k     *Keeper
	after string // where the next page begins
	// unreadable is how many of the threads so far cannot be read, the first of which is
	// example; told is how many there were in the walk before.
	unreadable, told int
	example          error
}

// page does what is due for the next page of threads.
func (w *walk) page(ctx context.Context) {
	heads, next, err := w.k.cfg.Store.Walk(ctx, w.after, retentionPage)
	if err != nil {
		if ctx.Err() == nil {
			w.k.cfg.Log.Warn("the threads could not be listed for retention", "error", err)
		}
		if !errors.Is(err, store.ErrUnreadable) {
			w.after = ""
			return
		}
	}
	w.after = next
	for i := range heads {
		if ctx.Err() != nil {
			return
		}
		w.visit(ctx, &heads[i])
	}
	if next == "" {
		w.tell()
	}
}

// visit does what is due for one thread. Trouble with it, even a panic, does not keep
// retention from the others.
func (w *walk) visit(ctx context.Context, h *store.Head) {
	var done threads.Cleaned
	err := h.Unreadable
	if err == nil {
		if h.Process != "" || w.k.cfg.Now().Age(h.UpdatedAt) < w.k.cfg.ArchiveAfter {
			return
		}
		err = routine.Caught(func() (err error) {
			done, err = w.retain(ctx, h.Key)
			return err
		})
	}
	switch {
	case err == nil:
		w.k.cfg.Cleaned(done)
		if done.Checkpoints > 0 || done.Messages > 0 {
			w.k.counting.measure(ctx, h.Key)
		}
	case errors.Is(err, store.ErrConflict),
		errors.Is(err, store.ErrFenced),
		errors.Is(err, store.ErrNotFound),
		ctx.Err() != nil:
		// somebody is working on it
	case thread.Unreadable(err):
		if w.unreadable++; w.unreadable == 1 {
			w.example = fmt.Errorf("thread %s: %w", h.Key, err)
		}
	default:
		w.k.cfg.Log.Warn("retention left a thread as it is", "thread", h.Key.Thread, "error", err)
	}
}

// tell ends a walk: it says how many threads cannot be read, in the log only if that has
// changed.
func (w *walk) tell() {
	w.k.cfg.Walked(w.unreadable)
	if w.unreadable != w.told {
		w.k.cfg.Log.Warn("threads that cannot be read are left out by retention; holdfast check names them",
			"unreadable", w.unreadable, "example", w.example)
	}
	w.told, w.unreadable, w.example = w.unreadable, 0, nil
}

// retain does what is due for one thread.
func (w *walk) retain(ctx context.Context, key store.ThreadKey) (threads.Cleaned, error) {
	var done threads.Cleaned
	// Archive a log that its process did not archive before it died.
	if err := w.k.Archive(ctx, key); err != nil {
		return done, err
	}
	goesOn, err := w.remove(ctx, key, &done, false)
	if err != nil || !goesOn {
		return done, err
	}
	err = w.k.engine.GoOn(ctx, key)
	var public *holdfast.Error
	if errors.As(err, &public) && public.Code == codes.AgentNotFound {
		_, err := w.remove(ctx, key, &done, true)
		return done, err
	}
	if err != nil && ctx.Err() == nil {
		w.k.cfg.Log.Info("a thread whose calls are finished goes on later", "thread", key.Thread, "error", err)
	}
	return done, nil
}

// remove removes what is due of one thread. It reports whether the thread waits for nothing
// but a run. agentGone means that it waits for that in vain.
func (w *walk) remove(
	ctx context.Context, key store.ThreadKey, done *threads.Cleaned, agentGone bool,
) (goesOn bool, err error) {
	defer w.k.engine.Lock(key)()
	t, err := w.k.read.Head(ctx, key)
	if err != nil {
		return false, err
	}
	head := t.Head
	now, keep := w.k.cfg.Now(), w.k.cfg.Retention
	waits := t.State.GoesOn(now.Time())
	if t.State.Running() || waits && !agentGone {
		return waits, nil
	}
	if keep.Threads > 0 && t.State.Status() == threads.StatusIdle && (waits || len(t.State.OutsideCalls()) == 0) &&
		now.Age(head.UpdatedAt) > keep.Threads {
		done.Threads = 1
		err := w.k.cfg.Store.Delete(ctx, key, head.Position())
		if err == nil {
			w.k.cfg.Limits.Deleted(t.Place().Principal, t.State.Bytes)
		}
		return false, err
	}
	large, err := w.largerThan(ctx, key, t.State.Bytes, keep.PruneBytes)
	if err != nil {
		return false, err
	}
	if !large {
		if aged, err := w.mayBeAged(ctx, t, now.Age(head.UpdatedAt)); err != nil || !aged {
			return false, err
		}
	}
	p := pruning{k: w.k, t: t}
	c, err := p.commit(ctx, func(_ int, cp *thread.Checkpoint) bool {
		return !large && now.Age(cp.CreatedAt) <= keep.Checkpoints
	})
	if err != nil || c == nil || p.checkpoints == 0 && !large {
		return false, err
	}
	done.Checkpoints, done.Messages = p.checkpoints, len(p.forget)
	return false, w.k.engine.Commit(ctx, t.Place(), c)
}

// mayBeAged reports whether a thread that has been idle for so long may have checkpoints
// to remove for their age. If all of them are that old, it is enough to know whether
// there is more than the newest: a thread that nobody uses costs one small read each
// time, whether it was pruned before or grew old before there was a limit.
func (w *walk) mayBeAged(ctx context.Context, t *thread.Thread, idle time.Duration) (bool, error) {
	limit := w.k.cfg.Retention.Checkpoints
	if limit <= 0 {
		return false, nil
	}
	if idle <= limit {
		return true, nil
	}
	newest, err := w.k.cfg.Store.Values(ctx, t.Key, store.KindCheckpoint, "", 2)
	return len(newest) > 1, err
}

// largerThan reports whether a thread takes more than bound bytes; 0 means no bound. The
// store is asked only if the estimate is more.
func (w *walk) largerThan(ctx context.Context, key store.ThreadKey, estimate, bound int64) (bool, error) {
	if bound <= 0 || estimate <= bound {
		return false, nil
	}
	total, err := w.k.read.Size(ctx, key)
	return total > bound, err
}
