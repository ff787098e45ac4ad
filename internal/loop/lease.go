package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/panics"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// announce makes the process known to the store. A store that answers, but refuses writes
// at the moment, is no reason not to start: it can be read. Until keepLease has announced
// the process, it begins no run and takes none over, because the others would not know
// that their owner lives.
func (e *Engine) announce(ctx context.Context) error {
	err := e.hold(ctx)
	switch {
	case err == nil:
		e.contact.renewed()
	case errors.Is(err, store.ErrVersionTooNew), errors.Is(err, store.ErrUnreadable):
		return err
	case errors.Is(err, store.ErrRefused):
		e.cfg.Log.Warn("the store refuses writes: the server starts nevertheless, but runs nothing until the store accepts them", "error", err)
	default:
		return thread.StoreError(err)
	}
	return nil
}

// hold takes or renews the lease, and agrees with the others on what is written. A process
// that cannot read what the others write gives its lease up for good: they take its runs
// over.
func (h *host) hold(ctx context.Context) error {
	if err := h.formats.Err(); err != nil {
		return err
	}
	if err := h.cfg.Store.Announce(ctx, h.process, h.cfg.Lease); err != nil {
		return err
	}
	err := h.formats.Agree(ctx, h.process)
	if errors.Is(err, store.ErrVersionTooNew) {
		return errors.Join(err, h.cfg.Store.Retire(ctx, h.process))
	}
	if err == nil {
		h.describe(ctx)
	}
	return err
}

// describe says which agents there are, if that is new. Until it succeeds, the others take this
// process for one that has every agent, or the ones that it had.
func (h *host) describe(ctx context.Context) {
	agents := h.use()
	defer agents.drop()
	if err := h.fleet.say(ctx, agents, h.cfg.Recover); err != nil && ctx.Err() == nil {
		h.cfg.Log.Warn("the other servers could not be told which agents this one has", "error", err)
	}
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
		case <-e.replaced:
			e.describe(e.ctx)
		}
	}
}

// renewLease renews the lease once, and says in the log what has changed.
func (e *Engine) renewLease() {
	err := panics.Caught(func() error { return e.hold(e.ctx) })
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
