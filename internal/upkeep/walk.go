package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The walk of retention comes past all threads, one after the other. It does what the index has not
// found: because a version without an index has written a thread last, because a limit has another
// value than when the thread came to rest, or because the index is damaged. And it counts the threads
// that cannot be read.

// retentionPage is how many threads are looked at at a time. It bounds the work.
const retentionPage = 100

// keepRetention looks at one page of threads after the other.
func (k *Keeper) keepRetention() {
	if k.cfg.Retention.Every <= 0 {
		return
	}
	w := walk{k: k}
	for {
		wait := k.cfg.Retention.Every
		if k.indexing.Progress().Complete { // it is enough if one of all processes comes past a thread
			wait = k.engine.Share(wait)
		}
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := routine.Caught(func() error { w.page(k.ctx); return nil }); err != nil {
			k.cfg.Log.Error("retention begins again with the first thread", "error", err)
			w.after = ""
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
	did, err := (retaining{w.k}).tend(ctx, key, false)
	if err != nil || !did.goesOn {
		return did.removed, err
	}
	did, err = (retaining{w.k}).goOn(ctx, key)
	if err != nil && ctx.Err() == nil {
		w.k.cfg.Log.Info("a thread whose calls are finished goes on later", "thread", key.Thread, "error", err)
	}
	return did.removed, nil
}
