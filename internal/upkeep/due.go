package upkeep

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The index finds what is due at a time, however many threads there are. The walk of retention comes
// past the same threads, so that nothing is lost if the index lacks one.

const (
	// duePage is how many threads a look finds at a time, and dueAtOnce how many of them go on at
	// the same time.
	duePage   = 100
	dueAtOnce = 8
	// dueAgain is how long a thread that did not go on is left, and how far apart the looks at the
	// whole list are while there is one; dueWhole is how far apart they are otherwise.
	dueAgain = 5 * time.Second
	dueWhole = 10 * time.Second
	// dueLate is how much later than its time a thread may come into the list, or a clock may be, and
	// be found by the next look.
	dueLate = 2 * time.Second
)

// dueList is what a process knows of the threads that are due.
type dueList struct {
	k *Keeper
	// tried has when threads were found, and where. They are not looked at for a while, since most
	// of those that are still in the list cannot go on now.
	tried map[store.Found]clock.Moment
	// whole is when a look last found every thread that was not among them; never means that the
	// next look is to. since is from when on another one looks.
	whole clock.Moment
	since time.Time
	// unread is whether the last look failed.
	unread bool
}

// keepDue goes on with threads when it is time.
func (k *Keeper) keepDue() {
	if k.cfg.Retention.Due <= 0 {
		return
	}
	d := dueList{k: k, tried: map[store.Found]clock.Moment{}}
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(k.engine.Share(k.cfg.Retention.Due)):
		}
		err := routine.Caught(func() error { return d.look(k.ctx) })
		if err != nil && k.ctx.Err() == nil && !d.unread {
			k.cfg.Log.Warn("what is due could not be found; it is tried again", "error", err)
		}
		d.unread = err != nil
	}
}

// look goes on with the threads that are due: those that have become so since the last look, which a
// store finds at once, and from time to time all others. It begins with those that have been for the
// shortest time: what cannot go on keeps nothing waiting that can.
func (d *dueList) look(ctx context.Context) error {
	for found, at := range d.tried {
		if at.Ran() > 2*dueAgain {
			delete(d.tried, found)
		}
	}
	q := store.Query{
		List:   store.List{Name: store.ListDue},
		Before: d.k.cfg.Now().Time().Add(time.Millisecond),
		Since:  d.since,
		Newest: true,
		Limit:  duePage,
	}
	began, whole := clock.Now(), d.whole.Ran() > dueWhole || len(d.tried) > 0 && d.whole.Ran() > dueAgain
	if whole {
		q.Since = time.Time{}
		q.Limit += len(d.tried)
	}
	full := false
	for n := q.Limit; n == q.Limit && !full && ctx.Err() == nil; {
		found, err := d.k.cfg.Store.Find(ctx, q)
		if err != nil {
			return err
		}
		n = len(found)
		if found = slices.DeleteFunc(found, d.rests); len(found) == 0 {
			break
		}
		full = d.goOn(ctx, found)
	}
	switch {
	case full: // some of those that were found were not tried
		d.whole = clock.Moment{}
	case whole:
		d.whole = began
	}
	d.since = q.Before.Add(-dueLate)
	return nil
}

// rests reports whether a thread was found a moment ago, and was found again since.
func (d *dueList) rests(f store.Found) bool {
	at, tried := d.tried[f]
	return tried && at.Ran() < dueAgain
}

// goOn goes on with threads. It reports whether this process has no place for more runs.
func (d *dueList) goOn(ctx context.Context, found []store.Found) (full bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	places := make(chan struct{}, dueAtOnce)
	for _, f := range found {
		places <- struct{}{}
		mu.Lock()
		if full || ctx.Err() != nil {
			mu.Unlock()
			break
		}
		_, again := d.tried[f]
		d.tried[f] = clock.Now()
		mu.Unlock()
		wg.Go(func() {
			defer func() { <-places }()
			err := routine.Caught(func() error { return d.one(ctx, f, again) })
			var public *holdfast.Error
			if errors.As(err, &public) && public.Code == codes.TooManyRuns {
				mu.Lock()
				full = true
				delete(d.tried, f)
				mu.Unlock()
			}
			d.note(ctx, f.Key, err)
		})
	}
	wg.Wait()
	return full
}

// one goes on with a thread. One that was found before and has not gone on may not be due at all.
func (d *dueList) one(ctx context.Context, f store.Found, again bool) error {
	if err := d.k.engine.GoOn(ctx, f.Key); err != nil || !again {
		return err
	}
	defer d.k.engine.Lock(f.Key)()
	t, err := d.k.read.Head(ctx, f.Key)
	if err != nil || t.State.Running() {
		return err // the run's next commit says where the thread is
	}
	c := d.k.cfg.amend(t)
	thread.Relist(c, t.State)
	if slices.ContainsFunc(c.Listings, func(l store.Listing) bool {
		return l.Name == store.ListDue && l.At.UnixMilli() == f.At.UnixMilli()
	}) {
		return nil
	}
	return d.k.engine.Commit(ctx, t.Place(), c)
}

// note logs why a thread did not go on, if that is news.
func (d *dueList) note(ctx context.Context, key store.ThreadKey, err error) {
	var public *holdfast.Error
	switch {
	case err == nil,
		errors.Is(err, store.ErrConflict),
		errors.Is(err, store.ErrFenced),
		errors.Is(err, store.ErrNotFound),
		thread.Unreadable(err), // retention says so
		ctx.Err() != nil:
		return
	case errors.As(err, &public) && (public.Code == codes.TooManyRuns || public.Code == codes.LimitExceeded ||
		public.Code == codes.AgentNotFound):
		return
	}
	d.k.cfg.Log.Info("a thread whose calls are finished goes on later", "thread", key.Thread, "error", err)
}
