package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/store"
)

// How threads are found whose owner is gone. The store tells of departures: of a process
// that has died or retired, which leaves all its threads, and of one that hands over a
// single thread. Of a silent process nobody tells, so the sweep looks: when the lease that ends
// first has ended, and at least once per lease. It reads the threads of owners that do not live, and
// no others (lost.go): what a takeover waits for does not depend on how much the others run. Now and
// then one of the processes looks at all owned threads, in case a hint is lost.

const (
	// claimsAtOnce bounds how many threads a sweep takes over at a time.
	claimsAtOnce = 8
	// wholeEvery is how far apart the looks at all owned threads are, of all processes together.
	wholeEvery = 10 * time.Minute
	// firstRetry and lastRetry are the shortest and the longest pause before a sweep looks again at
	// threads that the store has not let it take over: a slot of the cluster moves, or the disk is full.
	firstRetry, lastRetry = 50 * time.Millisecond, 400 * time.Millisecond
)

// sweeper finds the threads whose owner is gone.
type sweeper struct {
	losses
	log      *slog.Logger
	ctx      context.Context
	draining <-chan struct{}
	// succeed makes sure that a thread has a living owner, who is not leaving, if it is this process's
	// turn, which may depend on the thread's agent.
	succeed func(ctx context.Context, key store.ThreadKey, leaving string, mine func(agent string) bool) error
	// swept is called after each sweep.
	swept func()
	// waited is Config.Waited; it may be nil.
	waited func(ctx context.Context, what string)
	// share returns how long this process waits between two looks that all of them share.
	share func(time.Duration) time.Duration

	gone chan struct{}        // a process is gone
	left chan store.Departure // threads that were handed over
	// told has the threads that could not be taken over the last time, and why, so that the
	// log has each reason once.
	told map[store.ThreadKey]string
	// retry is the pause before the next sweep; 0 if the store has refused nothing.
	retry time.Duration
	// whole is when all owned threads were last looked at, and rest how long they are not after that.
	whole clock.Moment
	rest  time.Duration
	// unread is why the store could not be read the last time; empty if it could.
	unread string
}

// newSweeper returns a sweeper of the host's process.
func newSweeper(h *house) *sweeper {
	return &sweeper{
		losses: losses{
			store:   h.cfg.Store,
			process: h.process,
			lease:   h.cfg.Lease,
			contact: h.contact,
			behind:  h.behind,
			heirs:   h.fleet.heirs,
			forget:  h.fleet.forget,
			sharing: &h.host.Sharing,
		},
		log:      h.cfg.Log,
		ctx:      h.ctx,
		draining: h.draining,
		gone:     make(chan struct{}, 1),
		left:     make(chan store.Departure, 1024),
		waited:   h.cfg.Waited,
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

// lookAgain has run sweep, and try again what could not go on here: the agents have changed.
func (s *sweeper) lookAgain() {
	s.renewed.Store(true)
	s.look()
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
		if s.waited != nil {
			s.waited(s.ctx, "to sweep") // several may be gone at once
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
		err = routine.Caught(func() error { return s.succeed(s.ctx, d.Thread, d.Process, nil) })
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
	var orphans []orphaned
	err := routine.Caught(func() (err error) {
		var after time.Duration
		if s.isWholeDue() {
			orphans, after, err = s.lookAtAll()
		} else {
			orphans, after, err = s.lost(s.ctx, s.retry > 0)
		}
		next = min(next, after)
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
	if deaf := s.contact.deaf(); deaf > 0 && len(orphans) > 0 {
		next = min(next, deaf+afterLease)
	}
	if refused := s.full() || s.takeOver(orphans); s.again(refused) > 0 {
		next = min(next, s.retry)
	}
	return max(next, afterLease)
}

// isWholeDue reports whether all owned threads are to be looked at.
func (s *sweeper) isWholeDue() bool {
	if s.whole.Never() { // what this process has just found is what the others know
		s.whole, s.rest = clock.Now(), s.share(wholeEvery)
	}
	return s.whole.Ran() > s.rest
}

// lookAtAll returns all threads whose owners do not live, and when the first of the other leases ends.
func (s *sweeper) lookAtAll() (orphans []orphaned, next time.Duration, err error) {
	next = s.lease
	owned, err := s.store.Owned(s.ctx)
	if err != nil {
		return nil, next, err
	}
	s.whole, s.rest = clock.Now(), s.share(wholeEvery)
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
			orphans = append(orphans, orphaned{key: o.Key})
			if o.Process == s.process {
				s.behind.Store(true) // until it is taken over
			}
		}
	}
	// Each process takes the threads in an order of its own, so that they share the work.
	slices.SortFunc(orphans, func(a, b orphaned) int {
		return cmp.Compare(weight(s.process, []string{a.key.Tenant, a.key.Thread}),
			weight(s.process, []string{b.key.Tenant, b.key.Thread}))
	})
	return orphans, next, nil
}

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
func (s *sweeper) takeOver(orphans []orphaned) (refused bool) {
	var mu sync.Mutex
	left := map[store.ThreadKey]string{}
	routine.Each(len(orphans), claimsAtOnce, func(i int) {
		if s.stopping() {
			return
		}
		key := orphans[i].key
		err := routine.Caught(func() error { return s.succeed(s.ctx, key, "", orphans[i].mine) })
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
