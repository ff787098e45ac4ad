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
	// perThread is how much time there is at least for each thread that something is done for that can
	// wait, while this process has runs, and for so long after the last one.
	perThread = time.Second / 2000
	busyFor   = time.Second
	// lookSpan is about how long a look takes at most.
	lookSpan = 500 * time.Millisecond
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
	// later means that it can wait, so that the runs of this process do not.
	later bool
	do    func(ctx context.Context, key store.ThreadKey) (tended, error)
}

// chores returns what is to be done with the settings that there are.
func (r retaining) chores() []chore {
	tend := func(ctx context.Context, key store.ThreadKey) (tended, error) { return r.tend(ctx, key, false) }
	keep := r.k.cfg.Retention
	all := []chore{
		{list: store.ListDue, atOnce: 8, do: r.goOn},
		{
			list:   store.ListEnded,
			after:  r.k.cfg.ArchiveAfter + lostAfter,
			atOnce: 4,
			later:  true,
			do:     tend,
		},
	}
	if keep.Threads > 0 {
		all = append(all, chore{
			list:   store.ListResting,
			after:  keep.Threads,
			atOnce: 16,
			later:  true,
			do:     tend,
		})
	}
	if keep.Checkpoints > 0 {
		all = append(all, chore{
			list:   store.ListAging,
			after:  keep.Checkpoints,
			atOnce: 4,
			later:  true,
			do:     tend,
		})
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
	// since is from when on a look finds what has become due. All others are found from time to time:
	// whole is when that last began, never if it is to begin again, and below is where it goes on; zero
	// if it is done.
	since, below time.Time
	whole        clock.Moment
	// ran is when this process was last seen to have runs.
	ran clock.Moment
	// unread is whether the last look failed.
	unread bool
	// told is what is to be said of the page.
	told IndexLook
	// mended counts the threads of the page that were in the list by mistake.
	mended atomic.Int64
}

// keep looks again and again.
func (d *dueList) keep() {
	for more := false; ; {
		wait := d.k.engine.Share(d.k.cfg.Retention.Due)
		if more {
			wait = 0
		}
		select {
		case <-d.k.ctx.Done():
			return
		case <-time.After(wait):
		}
		err := routine.Caught(func() (err error) {
			more, err = d.look(d.k.ctx)
			return err
		})
		if more = more && err == nil; err != nil && d.k.ctx.Err() == nil && !d.unread {
			d.k.cfg.Log.Warn("what is due could not be found; it is tried again", "list", d.list, "error", err)
		}
		d.unread = err != nil
	}
}

// look does what is due: for threads for which it has become so since the last look, which a store
// finds at once, and from time to time for all others. It begins with those for which it has been for
// the shortest time: what cannot go on keeps nothing waiting that can. If that takes long, it reports
// that there is more: the next look begins with those for which something has become due meanwhile.
func (d *dueList) look(ctx context.Context) (more bool, err error) {
	for found, at := range d.tried {
		if at.Ran() > 2*dueAgain {
			delete(d.tried, found)
		}
	}
	if d.began.IsZero() {
		d.began = d.k.cfg.Now().Time()
	}
	// Places are kept to the millisecond: what is found is surely due.
	began, now := clock.Now(), d.k.cfg.Now().Time().Add(-d.after-time.Millisecond)
	list := store.List{Name: d.list}
	goesOn, is := !d.below.IsZero(), toEnd
	if !goesOn && (d.whole.Ran() > dueWhole || len(d.tried) > 0 && d.whole.Ran() > dueAgain) {
		d.whole, d.below = began, now // which finds what has become due, too
	} else {
		is, err = d.through(ctx, &store.Query{List: list, Since: d.since, Before: now, Newest: true}, began)
	}
	if is == toEnd {
		d.since = now.Add(-dueLate)
	}
	if all := (store.Query{List: list, Before: d.below, Newest: true}); is == toEnd && !d.below.IsZero() {
		is, err = d.through(ctx, &all, began)
		if d.below = all.Before; is == toEnd {
			d.below = time.Time{}
		}
	}
	if is == noPlace { // some of those that were found were not tried
		d.whole, d.below = clock.Moment{}, time.Time{}
	}
	return is == someLeft, err
}

// reached is how far a look has come.
type reached int

const (
	toEnd reached = iota
	// someLeft means that it has taken long, and noPlace that this process has no place for more runs.
	someLeft
	noPlace
)

// through does what is due for the threads that q finds. Unless it reaches the end, q then finds those that
// are left.
func (d *dueList) through(ctx context.Context, q *store.Query, began clock.Moment) (reached, error) {
	for page := duePage; ; page = min(2*page, maxDuePage) {
		q.Limit = page + len(d.tried)
		found, err := d.k.cfg.Store.Find(ctx, *q)
		if err != nil {
			return someLeft, err
		}
		below, end := time.Time{}, len(found) < q.Limit
		if !end {
			below = found[len(found)-1].At.Add(time.Millisecond) // others may be at the same place
		}
		is := d.all(ctx, slices.DeleteFunc(found, d.rests))
		d.tell()
		switch {
		case ctx.Err() != nil:
			return someLeft, ctx.Err()
		case is != toEnd || end:
			return is, nil
		}
		if q.Before = below; began.Ran() > lookSpan {
			return someLeft, nil
		}
	}
}

// tell says what was found in a page.
func (d *dueList) tell() {
	d.told.Left, d.told.Mended = len(d.tried), int(d.mended.Swap(0))
	d.k.lag.note(d.told.Late)
	if d.k.cfg.IndexLooked != nil {
		d.k.cfg.IndexLooked(d.told)
	}
	d.told = IndexLook{List: d.list}
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

// all does what is due for threads, for a while.
func (d *dueList) all(ctx context.Context, found []store.Found) (is reached) {
	began := clock.Now()
	slices.SortFunc(found, func(a, b store.Found) int {
		return cmp.Compare(d.turn(a.Key), d.turn(b.Key))
	})
	for len(found) > 0 && is == toEnd && ctx.Err() == nil {
		if began.Ran() > lookSpan {
			return someLeft
		}
		n := min(d.atOnce, len(found))
		if !d.later {
			n = len(found)
		}
		burst := clock.Now()
		is = d.some(ctx, found[:n], began)
		if found = found[n:]; d.later {
			d.giveWay(ctx, burst.Ran(), n)
		}
	}
	return is
}

// giveWay waits, if this process has runs, after something was done for n threads that took that long: what
// can wait takes half of the time at most, and not all that the store can do.
func (d *dueList) giveWay(ctx context.Context, took time.Duration, n int) {
	if d.k.engine.Running() > 0 {
		d.ran = clock.Now()
	}
	if d.ran.Ran() > busyFor {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(max(took, time.Duration(n)*perThread-took)):
	}
}

// some does what is due for some threads at the same time.
func (d *dueList) some(ctx context.Context, found []store.Found, began clock.Moment) (is reached) {
	var mu sync.Mutex
	routine.Each(len(found), d.atOnce, func(i int) {
		f := found[i]
		mu.Lock()
		if is == toEnd && began.Ran() > lookSpan {
			is = someLeft
		}
		if is != toEnd || ctx.Err() != nil {
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
		full := errors.As(err, &public) && public.Code == codes.TooManyRuns
		mu.Lock()
		if full {
			is = noPlace
		}
		if left || full {
			delete(d.tried, f)
		}
		mu.Unlock()
		d.note(ctx, f.Key, err)
	})
	return is
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
