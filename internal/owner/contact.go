package owner

import (
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
)

// A process shows that it lives by renewing its lease in the store, and judges the others by
// theirs. A lease that has run out says that its process was silent, not why. While the store
// is away nobody can renew, so when it is back all leases have run out, and the first process
// to look would take over runs that are alive. Therefore silence counts only for a process
// that could have heard the others speak: one that has itself been in contact with the store,
// without a break, for a whole lease. The living renew three times in that time.
//
// The same contact says what this process may still do. All of it is measured by this
// process's own clocks: how late the store answers, and what its clock says, must not make
// a lease look younger than it is.

// contact is how long this process has been in touch with the store.
type contact struct {
	lease time.Duration
	// began receives when a contact begins: the first one, and each after a break.
	began chan struct{}

	mu sync.Mutex
	// since is when the first renewal of this contact was answered: the lease is held from
	// then on.
	since clock.Moment
	// asked is when the newest renewal that was answered was asked for: the store counts the
	// lease from then on, or from a little later.
	asked clock.Moment
	// over means that this process has given its lease up.
	over bool
}

func newContact(lease time.Duration) *contact {
	return &contact{lease: lease, began: make(chan struct{}, 1)}
}

// holds is for how long after it was asked for a renewal is proof enough that the lease is
// held. Renewals are asked for a third of a lease apart, so the answer may take about a
// quarter of one. Two fifths are left for the work that starts because of it.
func (c *contact) holds() time.Duration { return c.lease * 3 / 5 }

// renewed notes that the store has just confirmed a renewal of this process's lease, which
// was asked for then. It returns how long the store was away; 0 if it was not.
//
// The time from asking for one renewal to the answer to the next bounds how long the store
// can have been away. A lease of another process needs at least two thirds of a lease
// without the store to run out, so no outage that matters goes unnoticed.
func (c *contact) renewed(asked clock.Moment) (away time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, gap := c.asked.Never(), c.asked.Elapsed()
	c.asked = asked
	if !first && gap <= c.holds() {
		return 0
	}
	c.since = clock.Now()
	select {
	case c.began <- struct{}{}:
	default: // the one before has not been seen yet
	}
	if first {
		return 0
	}
	return gap
}

// giveUp notes, before it is so, that this process gives its lease up for good.
func (c *contact) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// announced reports whether the store has ever confirmed this process's lease.
func (c *contact) announced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.asked.Never()
}

// beganAfter reports whether this contact began after t, which may be the zero moment.
func (c *contact) beganAfter(t clock.Moment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Never() || t.Before(c.since)
}

// HeldSince reports whether this process has held its lease from t until now: it has been in
// contact with the store since then, and was not suspended. So nobody can have taken over
// what it owned at t because it was silent.
func (c *contact) HeldSince(t clock.Moment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over && c.asked.Elapsed() <= c.holds() && !t.Before(c.since)
}

// deaf returns how long it takes until this process may judge the silence of others; 0 if it
// may now. The caller has just heard from the store: if the renewals have a gap up to now, the
// store was away, and contact begins with the next one.
func (c *contact) deaf() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.Elapsed() > c.holds() {
		return c.lease
	}
	return max(0, c.lease-c.since.Ran())
}
