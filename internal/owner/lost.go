package owner

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

// The threads of owners that do not live any more. All processes find that out at the same time, so
// each of them begins with the threads for which it comes first (heirs.go), and goes on in rounds: in
// each it tries those, too, for which one more comes before it, if they are still there. Threads that
// nobody has taken over after all rounds wait for something: for a server with their agent, or for the
// store. Two processes look after those; the others do so now and then, and when something has changed.

const (
	// maxOrphans is how many threads of one owner a sweep takes over. The next one finds the others.
	maxOrphans = 100_000
	// fullEvery is how often a process looks at everything that lost owners have left.
	fullEvery = time.Minute
)

// How long a process waits until it looks again.
const (
	// heirFirst is how long the others leave a thread to the process that is to take it over.
	heirFirst = 100 * time.Millisecond
	// afterLease is how long after the end of a lease the sweep looks, at the soonest. It
	// does not look more often than that.
	afterLease = 5 * time.Millisecond
)

// losses are the owners that are lost.
type losses struct {
	store   store.Store
	process string
	lease   time.Duration
	contact *contact
	// behind is set when this process may own threads that are not here.
	behind *atomic.Bool
	// here reports whether a thread's run is in this process.
	here func(store.ThreadKey) bool
	// heirs returns in which order the processes try threads, and forget has it read the next time.
	heirs  func(context.Context) (*heirs, error)
	forget func()

	of map[string]*round
	// renewed is set when what this process can go on with has changed.
	renewed atomic.Bool
	// looked is when everything was last looked at that lost owners have left.
	looked clock.Moment
	// living is how many processes live, as they were last counted; 0 before.
	living atomic.Int64
	// sharing is how many of them share what lost owners have left, as far as is known; 0 before.
	sharing *atomic.Int64
}

// round is how far this process has come with what an owner has left.
type round struct {
	// n is how many others may come before this one for the threads that it tries.
	n     int
	since clock.Moment
	// over means that it has tried all of them.
	over bool
	// others has those that were the owner's no more when they were looked at: another process was
	// faster. They stay in the list for a while, and are not looked at again in each round.
	others map[store.ThreadKey]bool
	// left is how many threads were still in the list of the owner when they were last looked at.
	left int
}

// note notes which of the threads that were looked at are the owner's no more.
func (r *round) note(looked map[store.ThreadKey]bool, found []store.Found) {
	for _, f := range found {
		delete(looked, f.Key)
	}
	if r.others == nil {
		r.others = looked
		return
	}
	maps.Copy(r.others, looked)
}

// orphaned is a thread whose owner is gone.
type orphaned struct {
	key store.ThreadKey
	// mine reports whether it is this process's turn, if the thread is of an agent; nil means that it is.
	mine func(agent string) bool
}

// lost returns the threads of owners that do not live and that it is this process's turn to try, and
// when to look again. all means those of all rounds.
func (s *losses) lost(ctx context.Context, all bool) (orphans []orphaned, next time.Duration, err error) {
	next = s.lease
	begun := clock.Now()
	owners, err := s.store.Owners(ctx)
	if err != nil {
		return nil, next, err
	}
	if s.renewed.Swap(false) {
		s.of = nil
	}
	first := s.looked.Never() // others have had their turns
	all = all || s.contact.beganAfter(s.looked) || s.looked.Ran() > fullEvery
	if s.behind.Swap(false) {
		if orphans, err = s.leftHere(ctx); err != nil {
			s.behind.Store(true)
			return nil, next, err
		}
	}
	living, left := s.count(owners), 0
	deaf, before, forgot := s.contact.deaf(), s.of, false
	s.of = map[string]*round{}
	for _, o := range owners {
		switch {
		case o.Process == s.process:
			continue
		case o.Lease.Alive():
			next = min(next, o.Lease.Left+afterLease)
			continue
		case !o.Lease.Gone && deaf > 0: // nobody can tell
			next = min(next, deaf+afterLease)
			continue
		}
		r := before[o.Process]
		if r == nil { // the order may have others, too, that are gone by now
			r = &round{since: begun}
			if !forgot {
				s.forget()
			}
			forgot = true
		}
		s.of[o.Process] = r
		found, err := s.leftBy(ctx, o.Process, r, all, all && (first || r.n > 0))
		if err != nil {
			return nil, next, err
		}
		left += r.left
		if orphans = append(orphans, found...); !r.over {
			next = min(next, heirFirst-r.since.Ran())
		}
	}
	s.share(living, left)
	if all {
		s.looked = begun
	}
	return orphans, next, nil
}

// share notes how many processes share the work: of many, only as many can have some as there are threads.
func (s *losses) share(living, left int) {
	if left > 0 {
		living = min(living, left)
	}
	s.sharing.Store(int64(living))
}

// leftHere returns the threads of this process that are not here.
func (s *losses) leftHere(ctx context.Context) (orphans []orphaned, err error) {
	found, err := s.store.Find(ctx, store.Query{
		List:  store.Owned(s.process),
		Limit: maxOrphans,
		Only:  func(key store.ThreadKey) bool { return !s.here(key) },
	})
	for _, f := range found {
		orphans = append(orphans, orphaned{key: f.Key})
		s.behind.Store(true) // until it is taken over
	}
	return orphans, err
}

// leftBy returns the threads of a lost owner that this process tries now, if it looks at all of them
// in any case. last means that this is the last round.
func (s *losses) leftBy(ctx context.Context, owner string, r *round, all, last bool) (orphans []orphaned, err error) {
	order, err := s.heirs(ctx)
	if err != nil {
		return nil, err
	}
	if r.over && !all && (!order.watches(owner) || r.since.Ran() < s.lease/2) {
		return nil, nil
	}
	if r.n > 0 && !r.over && r.since.Ran() < heirFirst && !all {
		return nil, nil // the next round is not due yet
	}
	most := r.n
	if r.over || last {
		most = len(order.all)
	}
	r.left = 0
	waits, looked := false, map[store.ThreadKey]bool{}
	found, err := s.store.Find(ctx, store.Query{
		List:  store.Owned(owner),
		Limit: maxOrphans,
		Only: func(key store.ThreadKey) bool {
			r.left++
			if s.here(key) || !r.over && !all && r.others[key] {
				return false
			}
			if order.soonest(owner, key) > most {
				waits = true
				return false
			}
			looked[key] = true
			return true
		},
	})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		orphans = append(orphans, orphaned{f.Key, func(agent string) bool {
			return order.turn(owner, f.Key, agent) <= most
		}})
	}
	if len(found) < maxOrphans { // or nothing is known of the others
		r.note(looked, found)
	}
	r.n, r.since = r.n+1, clock.Now()
	r.over = !waits && len(found) == 0 || most >= len(order.all)
	return orphans, nil
}

// count counts the processes that live.
func (s *losses) count(owners []store.Owner) (living int) {
	if c, can := s.store.(store.Census); can {
		living, _ = c.Census()
	} else {
		for _, o := range owners {
			if o.Lease.Alive() {
				living++
			}
		}
	}
	s.living.Store(int64(living))
	return living
}
