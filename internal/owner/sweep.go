package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/store"
)

// How threads are found whose owner is gone. The store tells of departures: of a process
// that has died or retired, which leaves all its threads, and of one that hands over a
// single thread. Of a silent process nobody tells, so the sweep looks: when the lease of an
// owner ends that it knows of, and at least once per lease, which finds the other owners. It reads
// the threads of owners that do not live, and no others: what a takeover waits for does not depend
// on how much the others run. Now and then it looks at all owned threads, in case a hint is lost.

const (
	// heirFirst is how long the others leave a thread that was handed over to its heir.
	heirFirst = 100 * time.Millisecond
	// claimsAtOnce bounds how many threads a sweep takes over at a time.
	claimsAtOnce = 8
	// afterLease is how long after the end of a lease the sweep looks, at the soonest. It
	// does not look more often than that.
	afterLease = 5 * time.Millisecond
	// wholeEvery is how many leases apart the looks at all owned threads are.
	wholeEvery = 10
	// firstRetry and lastRetry are the shortest and the longest pause before a sweep looks again at
	// threads that the store has not let it take over: a slot of the cluster moves, or the disk is full.
	firstRetry, lastRetry = 50 * time.Millisecond, 400 * time.Millisecond
)

// sweeper finds the threads whose owner is gone.
type sweeper struct {
	store    store.Store
	process  string
	lease    time.Duration
	log      *slog.Logger
	contact  *contact
	ctx      context.Context
	draining <-chan struct{}
	// behind is set when this process may own threads that are not here.
	behind *atomic.Bool
	// here reports whether a thread's run is in this process.
	here func(store.ThreadKey) bool
	// succeed makes sure that a thread has a living owner, who is not leaving.
	succeed func(ctx context.Context, key store.ThreadKey, leaving string) error
	// swept is called after each sweep.
	swept func()

	gone chan struct{}        // a process is gone
	left chan store.Departure // threads that were handed over
	// told has the threads that could not be taken over the last time, and why, so that the
	// log has each reason once.
	told map[store.ThreadKey]string
	// retry is the pause before the next sweep; 0 if the store has refused nothing.
	retry time.Duration
	// whole is when all owned threads were last looked at.
	whole clock.Moment
	// living is how many processes live, as they were last counted; 0 before.
	living atomic.Int64
	// unread is why the store could not be read the last time; empty if it could.
	unread string
}

// newSweeper returns a sweeper of the host's process.
func newSweeper(cfg *loop.Config, process string, c *contact) *sweeper {
	return &sweeper{
		store:   cfg.Store,
		process: process,
		lease:   cfg.Lease,
		log:     cfg.Log,
		contact: c,
		gone:    make(chan struct{}, 1),
		left:    make(chan store.Departure, 1024),
	}
}

// hear takes in a departure. Handed-over threads for which there is no room are found by the
// sweep once their process is gone.
func (s *sweeper) hear(d store.Departure) {
	switch {
	case d.Retired: // the heirs have what they were told of by then
		time.AfterFunc(heirFirst, s.look)
	case d.Thread == (store.ThreadKey{}):
		s.look()
	default:
		select {
		case s.left <- d:
		default:
		}
	}
}

// look has run sweep.
func (s *sweeper) look() {
	select {
	case s.gone <- struct{}{}:
	default: // a sweep is due
	}
}

// run sweeps whenever contact with the store begins, and from then on when there may be
// something to find, until nothing new may start.
func (s *sweeper) run() {
	timer := time.NewTimer(s.lease)
	defer timer.Stop()
	// Both are nil until the process is announced: it may own nothing before.
	var due <-chan time.Time
	var gone <-chan struct{}
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.draining:
			return
		case <-s.contact.began:
			due, gone = timer.C, s.gone
		case <-gone:
		case <-due:
		}
		for more := true; more; { // one sweep is for all that there is to hear by now
			select {
			case <-s.contact.began:
				due, gone = timer.C, s.gone
			case <-gone:
			default:
				more = false
			}
		}
		if s.stopping() {
			return
		}
		timer.Reset(s.sweep())
		s.swept()
	}
}

// inheritAll takes over what is handed over, until nothing new may start.
func (s *sweeper) inheritAll() {
	var claims sync.WaitGroup
	defer claims.Wait()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.draining:
			return
		case d := <-s.left:
			if s.contact.announced() {
				claims.Go(func() { s.inherit(d) })
			}
		}
	}
}

// inherit takes over a thread that was handed over. The others wait, and find that the heir
// has done it.
func (s *sweeper) inherit(d store.Departure) {
	if !d.Heir && !s.wait(heirFirst) {
		return
	}
	var err error
	begun := clock.Now()
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err = routine.Caught(func() error { return s.succeed(s.ctx, d.Thread, d.Process) })
		if err == nil || !passing(err) || begun.Ran() > s.lease || !s.wait(pause) {
			break // the sweep finds it later
		}
	}
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
		s.log.Warn("a run that was handed over could not be taken over", "thread", d.Thread.Thread, "error", err)
	}
}

// wait waits for d; it returns false if nothing new may start any more.
func (s *sweeper) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.draining:
	case <-s.ctx.Done():
	}
	return false
}

// sweep takes over every thread whose owner is gone, and returns when to sweep again.
// Trouble with one thread, even a panic, does not keep it from the others.
func (s *sweeper) sweep() (next time.Duration) {
	next = s.lease
	var owned []store.OwnedThread
	err := routine.Caught(func() (err error) {
		if s.contact.beganAfter(s.whole) || s.retry > 0 || s.whole.Ran() > wholeEvery*s.lease {
			begun := clock.Now()
			if owned, err = s.store.Owned(s.ctx); err == nil {
				s.whole = begun
			}
			return err
		}
		var alive time.Duration
		owned, alive, err = s.lost()
		next = min(next, alive)
		return err
	})
	if err != nil {
		if s.ctx.Err() == nil && s.unread != reason(err) {
			s.log.Warn("the sweep could not read the store", "error", err)
		}
		s.unread = reason(err)
		return min(next, s.again(true))
	}
	s.unread = ""
	// Each process takes the threads in an order of its own, so that they share the work.
	slices.SortFunc(owned, func(a, b store.OwnedThread) int {
		return cmp.Compare(s.turn(a.Key), s.turn(b.Key))
	})
	var orphans []store.ThreadKey
	leases := map[string]store.Lease{}
	for _, o := range owned {
		l, known := leases[o.Process]
		if !known {
			l = s.leaseOf(o.Process)
			leases[o.Process] = l
		}
		switch {
		case s.here(o.Key):
		case l.Alive():
			next = min(next, l.Left+afterLease)
		default:
			orphans = append(orphans, o.Key)
			if o.Process == s.process {
				s.behind.Store(true) // until it is taken over
			}
		}
	}
	if deaf := s.contact.deaf(); deaf > 0 && len(orphans) > 0 {
		next = min(next, deaf+afterLease)
	}
	if refused := s.full() || s.takeOver(orphans); s.again(refused) > 0 {
		next = min(next, s.retry)
	}
	return max(next, afterLease)
}

// turn is where a thread is in this process's order. It follows from their names.
func (s *sweeper) turn(key store.ThreadKey) uint64 {
	h := fnv.New64a()
	for _, name := range []string{s.process, key.Tenant, key.Thread} {
		_, _ = h.Write([]byte(name))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// lost returns the threads of owners that do not live, and when the first of the other leases ends.
func (s *sweeper) lost() (owned []store.OwnedThread, next time.Duration, err error) {
	next = s.lease
	owners, err := s.store.Owners(s.ctx)
	if err != nil {
		return nil, next, err
	}
	living := 0
	for _, o := range owners {
		if o.Lease.Alive() {
			living++
		}
		switch {
		case o.Process == s.process && s.behind.Swap(false):
		case o.Process == s.process:
			continue
		case o.Lease.Alive():
			next = min(next, o.Lease.Left+afterLease)
			continue
		}
		found, err := s.store.Find(s.ctx, store.Query{List: store.Owned(o.Process), Limit: maxOrphans})
		if err != nil {
			return nil, next, err
		}
		for _, f := range found {
			owned = append(owned, store.OwnedThread{Key: f.Key, Process: o.Process})
		}
	}
	s.living.Store(int64(living))
	return owned, next, nil
}

// maxOrphans is how many threads of one owner a sweep takes over. The next one finds the others.
const maxOrphans = 100_000

// full reports whether the store has refused something, and says that it would refuse every commit
// now: then no thread is tried.
func (s *sweeper) full() bool {
	checker, can := s.store.(store.CommitChecker)
	return can && s.retry > 0 && checker.CanCommit(s.ctx) != nil
}

// again returns the pause before the next sweep, if the store has refused something.
func (s *sweeper) again(refused bool) time.Duration {
	s.retry = min(2*s.retry, lastRetry)
	switch {
	case !refused:
		s.retry = 0
	case s.retry == 0:
		s.retry = firstRetry
	}
	return s.retry
}

// passing reports whether an error is that of a store that may soon do what it was asked for.
func passing(err error) bool {
	return errors.Is(err, store.ErrRefused) || holdfast.AsError(err).Code == codes.StoreUnavailable
}

// leaseOf returns the lease of an owner; the zero lease, which is not alive, if that cannot
// be told. The threads of this process that are not here are nobody's.
func (s *sweeper) leaseOf(process string) (l store.Lease) {
	if process == s.process {
		return l
	}
	err := routine.Caught(func() (err error) {
		l, err = s.store.Lease(s.ctx, process)
		return err
	})
	if err != nil {
		return store.Lease{}
	}
	return l
}

// takeOver takes the threads over whose owners turn out to be gone. It reports whether the store has
// refused some of them for now.
func (s *sweeper) takeOver(orphans []store.ThreadKey) (refused bool) {
	var mu sync.Mutex
	var claims sync.WaitGroup
	places := make(chan struct{}, claimsAtOnce)
	left := map[store.ThreadKey]string{}
	for _, key := range orphans {
		places <- struct{}{}
		if s.stopping() {
			break
		}
		claims.Go(func() {
			defer func() { <-places }()
			err := routine.Caught(func() error { return s.succeed(s.ctx, key, "") })
			if err == nil || s.ctx.Err() != nil || errors.Is(err, store.ErrNotFound) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			left[key], refused = reason(err), refused || passing(err)
			if s.told[key] != left[key] {
				s.log.Warn("a run could not be recovered yet", "thread", key.Thread, "error", err)
			}
		})
	}
	claims.Wait()
	s.told = left
	return refused
}

// stopping reports whether nothing new may start.
func (s *sweeper) stopping() bool {
	select {
	case <-s.draining:
		return true
	default:
		return s.ctx.Err() != nil
	}
}

// reason returns what distinguishes one reason from another in the log. The stack of a
// panic differs from time to time.
func reason(err error) string {
	var p *routine.PanicError
	if errors.As(err, &p) {
		return fmt.Sprint(p.Value)
	}
	return err.Error()
}
