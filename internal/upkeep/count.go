package upkeep

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The needs of the limits of tenants and users: a thread is measured when its log has been
// archived or something was removed from it, and now and then all threads are counted, because
// the counts in the store may be off; see package quota.

// countCheck is how often each process asks whether it is its turn to count.
const countCheck = time.Minute

// counting measures threads and counts them for the limits.
type counting struct {
	cfg    *Config
	engine Engine
	read   thread.Reader
	soon   func(key store.ThreadKey) // has a thread archived, and then measured
}

// keep counts all threads when it is due, once anything is counted.
func (k *counting) keep(ctx context.Context) {
	if !k.cfg.Limits.Await(ctx) {
		return
	}
	tick := time.NewTicker(countCheck)
	defer tick.Stop()
	for due := false; ; {
		var err error
		if !due {
			due, err = k.cfg.Limits.CountDue(ctx)
		}
		if due {
			err = routine.Caught(func() error { return k.all(ctx) })
			due = err != nil
		}
		if err != nil && ctx.Err() == nil {
			k.cfg.Log.Warn("what tenants use could not be counted; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Count counts all threads and what they take, and puts the counts in the store right.
func (k *Keeper) Count(ctx context.Context) error { return k.counting.all(ctx) }

// all is Count.
func (k *counting) all(ctx context.Context) error {
	k.cfg.Limits.Flush(ctx) // before NewCount, or it would look like what changes meanwhile
	count, err := k.cfg.Limits.NewCount(ctx)
	if err != nil {
		return err
	}
	seed, seen := maphash.MakeSeed(), map[uint64]bool{} // a store may list a thread twice
	for after := ""; ; {
		heads, next, err := k.cfg.Store.Walk(ctx, after, retentionPage)
		if err != nil && !errors.Is(err, store.ErrUnreadable) {
			return err
		}
		for i := range heads {
			h := &heads[i]
			if sum := maphash.Comparable(seed, h.Key); !seen[sum] {
				seen[sum] = true
				if err := k.one(ctx, h, count); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if next == "" {
			break
		}
		after = next
	}
	k.cfg.Limits.Flush(ctx)
	wrong, err := count.Correct(ctx)
	if wrong > 0 {
		k.cfg.Log.Info("the counts of what tenants use were put right", "threads", len(seen), "counts", wrong)
	}
	return err
}

// one counts one thread. One that will never be read has a size of 0; if only the store does
// not answer, the count is of no use.
func (k *counting) one(ctx context.Context, h *store.Head, count *quota.Count) error {
	owner := holdfast.Principal{Tenant: h.Key.Tenant, User: h.User}
	if err := count.Begin(ctx, owner); err != nil {
		return err
	}
	t, err := k.head(ctx, h.Key)
	var mistake *routine.PanicError
	switch {
	case errors.Is(err, store.ErrNotFound): // deleted meanwhile
		return nil
	case thread.Unreadable(err), errors.As(err, &mistake):
		count.Thread(owner, 0)
		return nil
	case err != nil:
		return err
	}
	if !t.State.Measured && !t.State.Running() && k.cfg.Now().Age(h.UpdatedAt) >= k.cfg.ArchiveAfter {
		k.measure(ctx, h.Key)
		if again, err := k.head(ctx, h.Key); err == nil {
			t = again
		}
	}
	count.Thread(owner, t.State.Bytes)
	return nil
}

// head reads a thread. A panic is its error.
func (k *counting) head(ctx context.Context, key store.ThreadKey) (t *thread.Thread, err error) {
	err = routine.Caught(func() (err error) {
		t, err = k.read.Head(ctx, key)
		return err
	})
	return t, err
}

// wrote adds to the size of a thread what the commit c is going to write, which is an
// estimate until the thread is measured.
func wrote(st *thread.State, c *store.Commit) {
	st.Bytes += thread.BytesOf(c)
	st.Measured, st.Tidied = false, 0
}

// measureSoon has a thread measured that was changed. A caller who was told its ETag has
// time to use it.
func (k *counting) measureSoon(key store.ThreadKey) {
	if k.cfg.Limits.Counts() {
		k.soon(key)
	}
}

// measure stores in the head of a thread that does not run what the thread takes. If that
// fails, even with a panic, it stays as it was estimated.
func (k *counting) measure(ctx context.Context, key store.ThreadKey) {
	if !k.cfg.Limits.Counts() {
		return
	}
	err := routine.Caught(func() error { return k.tryMeasure(ctx, key) })
	switch {
	case err == nil,
		errors.Is(err, store.ErrConflict),
		errors.Is(err, store.ErrFenced),
		errors.Is(err, store.ErrNotFound),
		ctx.Err() != nil:
	default:
		k.cfg.Log.Warn("a thread could not be measured; its size stays an estimate", "thread", key.Thread, "error", err)
	}
}

func (k *counting) tryMeasure(ctx context.Context, key store.ThreadKey) error {
	defer k.engine.Lock(key)()
	t, err := k.read.Head(ctx, key)
	if err != nil || t.State.Running() {
		return err
	}
	size, err := k.read.Size(ctx, key)
	before := t.State.Bytes
	if err != nil || t.State.Measured && size == before {
		return err
	}
	st := t.State.Clone()
	st.Bytes, st.Measured = size, true
	c := k.cfg.amendUnseen(t)
	thread.Save(c, st)
	if err := k.engine.Commit(ctx, t.Place(), c); err != nil {
		return err
	}
	k.cfg.Limits.Wrote(t.Place().Principal, size-before)
	return nil
}
