package loop

import (
	"sync"
	"time"
)

// A process shows that it lives by renewing its lease in the store, and judges the others
// by theirs. A lease that has run out says that its process was silent, not why. While the
// store is away nobody can renew, so when it is back all leases have run out, and whoever
// looked first would take over runs that are alive. Therefore silence counts only for a
// process that could have heard the others speak: one that has itself been in contact with
// the store, without a break, for a whole lease. The living renew three times in that time.

// contact is how long this process has been in touch with the store.
type contact struct {
	lease time.Duration
	// began receives when a contact begins: the first one, and each after a break.
	began chan struct{}

	mu    sync.Mutex
	since time.Time // the first renewal of this contact
	last  time.Time // the newest one
}

func newContact(lease time.Duration) *contact {
	return &contact{lease: lease, began: make(chan struct{}, 1)}
}

// renewed notes that the store has just confirmed a renewal of this process's lease. It
// returns how long the store was away; 0 if it was not.
//
// Renewals are a third of a lease apart. More than half a lease between two of them means
// that one is missing. A lease of another process needs at least two thirds of a lease
// without the store to run out, so no outage that matters goes unnoticed.
func (c *contact) renewed() (away time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	first := c.last.IsZero()
	gap := elapsed(c.last, now)
	c.last = now
	if !first && gap <= c.lease/2 {
		return 0
	}
	c.since = now
	select {
	case c.began <- struct{}{}:
	default: // the one before has not been seen yet
	}
	if first {
		return 0
	}
	return gap
}

// announced reports whether the store has ever confirmed this process's lease.
func (c *contact) announced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.last.IsZero()
}

// heldSince reports whether this process has held its lease from t until now: it has been in
// contact with the store since then, and was not suspended. So nobody can have taken over
// what it owned at t because it was silent.
func (c *contact) heldSince(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return elapsed(c.last, time.Now()) <= c.lease/2 && !t.Before(c.since)
}

// deaf returns how long it takes until this process may judge the silence of others; 0 if
// it may now. Whoever asks has just heard from the store: if the renewals have a gap up
// to now, the store was away, and contact begins with the next one.
func (c *contact) deaf() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if elapsed(c.last, now) > c.lease/2 {
		return c.lease
	}
	return max(0, c.lease-now.Sub(c.since))
}

// elapsed returns how long ago then was. The monotonic clock, by which timers go, may stand
// still while a machine sleeps; the clock on the wall does not. If that one is set, the
// store is only asked once more than necessary.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}
