package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/panics"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A process shows that it lives by renewing its lease in the store, and judges the others
// by theirs. A lease that has run out says that its process was silent, not why. While the
// store is away nobody can renew, so when it is back all leases have run out, and whoever
// looked first would take over runs that are alive. Therefore silence counts only for a
// process that could have heard the others speak: one that has itself been in contact with
// the store, without a break, for a whole lease. The living renew three times in that time.

// contact is how long this process has been in touch with the store. It goes by the
// monotonic clock, like the timers beside it.
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
	gap := now.Sub(c.last)
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

// deaf returns how long it takes until this process may judge the silence of others; 0 if
// it may now. Whoever asks has just heard from the store: if the renewals have a gap up
// to now, the store was away, and contact begins with the next one.
func (c *contact) deaf() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.last) > c.lease/2 {
		return c.lease
	}
	return max(0, c.lease-now.Sub(c.since))
}

// announce makes the process known to the store. A store that answers, but refuses writes
// at the moment, is no reason not to start: it can be read. Until keepLease has announced
// the process, it begins no run and takes none over, because the others would not know
// that their owner lives.
func (e *Engine) announce(ctx context.Context) error {
	err := e.cfg.Store.Announce(ctx, e.process, e.cfg.Lease)
	switch {
	case err == nil:
		e.contact.renewed()
	case errors.Is(err, store.ErrRefused):
		e.cfg.Log.Warn("the store refuses writes: the server starts nevertheless, but runs nothing until the store accepts them", "error", err)
	default:
		return thread.StoreError(err)
	}
	return nil
}

// errUnannounced is why nothing runs before the store has accepted the process's lease.
func errUnannounced() error {
	return thread.StoreError(fmt.Errorf("%w: it has not accepted this server's lease yet", store.ErrRefused))
}

// keepLease renews the process's lease three times per lease period.
func (e *Engine) keepLease() {
	tick := time.NewTicker(e.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
			e.renewLease()
		}
	}
}

// renewLease renews the lease once, and says in the log what has changed.
func (e *Engine) renewLease() {
	err := panics.Caught(func() error { return e.cfg.Store.Announce(e.ctx, e.process, e.cfg.Lease) })
	if e.ctx.Err() != nil {
		return
	}
	e.cfg.Observer.LeaseRenewed(err)
	if err != nil {
		e.cfg.Log.Warn("the lease could not be renewed", "error", err)
		return
	}
	if !e.contact.announced() {
		e.cfg.Log.Info("the store accepts writes; runs can begin")
	}
	if away := e.contact.renewed(); away > 0 {
		e.cfg.Log.Info("in contact with the store again; runs of silent servers are taken over after one lease", "away", away, "lease", e.cfg.Lease)
	}
}
