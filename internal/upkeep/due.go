package upkeep

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The index finds what is due at a time, however many threads there are. A list of it has threads by a
// time that their state says; how long after that they are due is a setting of this process, or nothing.
// The walk of retention comes past the same threads, so that nothing is lost if the index lacks one.

const (
	// duePage is how many threads a look finds at a time, and maxDuePage at most, when there are more.
	duePage, maxDuePage = 100, 1600
	// dueAgain is how long a thread that did not go on is left, and how far apart the looks at the
	// whole list are while there is one; dueWhole is how far apart they are otherwise.
	dueAgain = 5 * time.Second
	dueWhole = 10 * time.Second
	// dueLate is how much later than its time a thread may come into the list, or a clock may be, and
	// be found by the next look.
	dueLate = 2 * time.Second
	// lostAfter is how much longer than its owner any other process leaves the log of an ended run.
	lostAfter = 250 * time.Millisecond
)

// chore is what is done for the threads of a list.
type chore struct {
	list string
	// after is how long after their place in the list it is due.
	after time.Duration
	// atOnce is for how many of them it is done at the same time.
	atOnce int
	do     func(ctx context.Context, key store.ThreadKey) (tended, error)
}

// chores returns what is to be done with the settings that there are.
func (r retaining) chores() []chore {
	tend := func(ctx context.Context, key store.ThreadKey) (tended, error) { return r.tend(ctx, key, false) }
	keep := r.k.cfg.Retention
	all := []chore{
		{store.ListDue, 0, 8, r.goOn},
		{store.ListEnded, r.k.cfg.ArchiveAfter + lostAfter, 4, tend},
	}
	if keep.Threads > 0 {
		all = append(all, chore{store.ListResting, keep.Threads, 16, tend})
	}
	if keep.Checkpoints > 0 {
		all = append(all, chore{store.ListAging, keep.Checkpoints, 4, tend})
	}
	return all
}

// keepDue begins to do what is due.
func (r retaining) keepDue() {
	k := r.k
	if k.cfg.Retention.Due <= 0 {
		return
	}
	for _, c := range r.chores() {
		d := &dueList{chore: c, k: k, seed: k.cfg.NewID("look"), tried: map[store.Found]clock.Moment{}}
		d.told.List = c.list
		k.wg.Go(d.keep)
	}
}

// IndexLook is what a look into a list of the index has found: how late each thread was found that was
// not found before, how many threads are left for which something is due that could not be done, and how
// many were in the list by mistake.
type IndexLook struct {
	List         string
	Late         []time.Duration
	Left, Mended int
}

// dueList is what a process knows of the threads of a list that are due.
type dueList struct {
	chore
	k *Keeper
	// seed has this process take the threads of a page in an order of its own, so that it does not
	// try each at the same time as another process.
	seed string
	// began is when this process first looked.
	began time.Time
	// tried has when threads were found, and where. They are not looked at for a while, since most
	// of those that are still in the list cannot go on now.
	tried map[store.Found]clock.Moment
	// whole is when a look last found every thread that was not among them; never means that the
	// next look is to. since is from when on another one looks.
	whole clock.Moment
	since time.Time
	// unread is whether the last look failed.
	unread bool
	// told is what is to be said of the page.
	told IndexLook
	// mended counts the threads of the page that were in the list by mistake.
	mended atomic.Int64
}

// keep looks again and again.
func (d *dueList) keep() {
	for {
		select {
		case <-d.k.ctx.Done():
			return
		case <-time.After(d.k.engine.Share(d.k.cfg.Retention.Due)):
		}
		err := routine.Caught(func() error { return d.look(d.k.ctx) })
		if err != nil && d.k.ctx.Err() == nil && !d.unread {
			d.k.cfg.Log.Warn("what is due could not be found; it is tried again", "list", d.list, "error", err)
		}
		d.unread = err != nil
	}
}

// look does what is due: for threads for which it has become so since the last look, which a store
// finds at once, and from time to time for all others. It begins with those for which it has been for
// the shortest time: what cannot go on keeps nothing waiting that can.
func (d *dueList) look(ctx context.Context) error {
	for found, at := range d.tried {
		if at.Ran() > 2*dueAgain {
			delete(d.tried, found)
		}
	}
	if d.began.IsZero() {
		d.began = d.k.cfg.Now().Time()
	}
	q := store.Query{List: store.List{Name: d.list}, Since: d.since, Newest: true}
	began, whole := clock.Now(), d.whole.Ran() > dueWhole || len(d.tried) > 0 && d.whole.Ran() > dueAgain
	if whole {
		q.Since = time.Time{}
	}
	full := false
	for page, n := duePage, 0; n == q.Limit && !full && ctx.Err() == nil; page = min(2*page, maxDuePage) {
		// Places are kept to the millisecond: what is found is surely due.
		q.Before, q.Limit = d.k.cfg.Now().Time().Add(-d.after-time.Millisecond), page
		if whole {
			q.Limit += len(d.tried)
		}
		found, err := d.k.cfg.Store.Find(ctx, q)
		if err != nil {
			return err
		}
		n = len(found)
		if found = slices.DeleteFunc(found, d.rests); len(found) > 0 {
			full = d.all(ctx, found)
		}
		d.told.Left, d.told.Mended = len(d.tried), int(d.mended.Swap(0))
		d.k.lag.note(d.told.Late)
		if d.k.cfg.IndexLooked != nil {
			d.k.cfg.IndexLooked(d.told)
		}
		d.told = IndexLook{List: d.list}
		if len(found) == 0 {
			break
		}
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

// late returns how much later than its time a thread was found, or than this process began to look.
func (d *dueList) late(f store.Found) time.Duration {
	due := f.At.Add(d.after)
	if due.Before(d.began) {
		due = d.began
	}
	return max(d.k.cfg.Now().Age(due), 0)
}

// rests reports whether a thread was found a moment ago, and was found again since.
func (d *dueList) rests(f store.Found) bool {
	at, tried := d.tried[f]
	return tried && at.Ran() < dueAgain
}

// all does what is due for threads. It reports whether this process has no place for more runs.
func (d *dueList) all(ctx context.Context, found []store.Found) (full bool) {
	slices.SortFunc(found, func(a, b store.Found) int {
		return cmp.Compare(d.turn(a.Key), d.turn(b.Key))
	})
	var mu sync.Mutex
	routine.Each(len(found), d.atOnce, func(i int) {
		f := found[i]
		mu.Lock()
		if full || ctx.Err() != nil {
			mu.Unlock()
			return
		}
		_, again := d.tried[f]
		d.tried[f] = clock.Now()
		if !again {
			d.told.Late = append(d.told.Late, d.late(f))
		}
		mu.Unlock()
		var left bool
		err := routine.Caught(func() (err error) {
			left, err = d.one(ctx, f, again)
			return err
		})
		var public *holdfast.Error
		is := errors.As(err, &public) && public.Code == codes.TooManyRuns
		mu.Lock()
		if full = full || is; left || is {
			delete(d.tried, f)
		}
		mu.Unlock()
		d.note(ctx, f.Key, err)
	})
	return full
}

// turn is where a thread comes in the order in which this process takes those of a page.
func (d *dueList) turn(key store.ThreadKey) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, d.seed+"\x00"+key.Tenant+"\x00"+key.Thread)
	return h.Sum64()
}

// one does what is due for a thread, and reports whether the thread has left its place in the list. One
// that was found before and is still there may not be due at all.
func (d *dueList) one(ctx context.Context, f store.Found, again bool) (left bool, err error) {
	did, err := d.do(ctx, f.Key)
	if err == nil {
		d.k.cfg.Cleaned(did.removed)
	}
	if err != nil || did.stored || !again {
		return did.stored, err
	}
	return false, d.mend(ctx, f)
}

// mend has a thread leave a list that its state does not name.
func (d *dueList) mend(ctx context.Context, f store.Found) error {
	defer d.k.engine.Lock(f.Key)()
	t, err := d.k.read.Head(ctx, f.Key)
	if err != nil || t.State.Running() {
		return err // the run's next commit says where the thread is
	}
	c := d.k.cfg.amendUnseen(t)
	thread.Relist(c, t.State)
	if slices.ContainsFunc(c.Listings, func(l store.Listing) bool {
		return l.Name == d.list && l.At.UnixMilli() == f.At.UnixMilli()
	}) {
		return nil
	}
	if err = d.k.engine.Commit(ctx, t.Place(), c); err == nil {
		d.mended.Add(1)
	}
	return err
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
	case d.list == store.ListDue:
		d.k.cfg.Log.Info("a thread whose calls are finished goes on later", "thread", key.Thread, "error", err)
	default:
		d.k.cfg.Log.Warn("retention left a thread as it is", "thread", key.Thread, "error", err)
	}
}
