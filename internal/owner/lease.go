package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// How a process shows that it lives: it renews its lease three times in each, agrees with the
// others on what is written, and tells them what there is to run here. The consequences for
// this process are in contact.go.

// renewal keeps the process's lease.
type renewal struct {
	*house
	mu routine.Lock // a renewal is under way, or the lease is given up
}

// announce makes the process known to the store. A store that answers, but refuses writes
// at the moment, is no reason not to start: it can be read. Until keep has announced
// the process, it begins no run and takes none over, because the others would not know
// that their owner lives.
func (r *renewal) announce(ctx context.Context) error {
	_, err := r.hold(ctx)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrVersionTooNew), errors.Is(err, store.ErrUnreadable):
		return err
	case errors.Is(err, store.ErrRefused):
		r.cfg.Log.Warn("the store refuses writes: the server starts nevertheless, but runs nothing "+
			"until the store accepts them", "error", err)
	default:
		return thread.StoreError(err)
	}
	return nil
}

// hold takes or renews the lease. The first time, it does what agree does, too, before it
// returns. It returns how long the store was away.
func (r *renewal) hold(ctx context.Context) (away time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.formats.Err(); err != nil {
		return 0, err
	}
	asked := clock.Now()
	if err := r.cfg.Store.Announce(ctx, r.process, r.cfg.Lease); err != nil {
		return 0, err
	}
	if !r.contact.announced() {
		if err := r.formats.Agree(ctx, r.process); err != nil {
			return 0, r.obey(ctx, err)
		}
		r.describe(ctx)
	}
	return r.contact.renewed(asked), nil
}

// agree agrees with the others on what is written, after the lease was renewed, and tells them
// what there is to run here.
func (r *renewal) agree(ctx context.Context) error {
	err := r.formats.Agree(ctx, r.process)
	if err == nil {
		r.describe(ctx)
		return nil
	}
	r.mu.Lock() // a renewal that is under way must not land after this
	defer r.mu.Unlock()
	return r.obey(ctx, err)
}

// obey returns why the servers could not agree. A process that cannot read what the others
// write gives its lease up for good: they take its runs over. The caller holds mu.
func (r *renewal) obey(ctx context.Context, err error) error {
	if !errors.Is(err, store.ErrVersionTooNew) {
		return err
	}
	r.contact.giveUp()
	return errors.Join(err, r.cfg.Store.Retire(ctx, r.process))
}

// describe says which agents there are, if that is new. Until it succeeds, the others take this
// process for one that has every agent, or the ones that it had.
func (h *house) describe(ctx context.Context) {
	agents := h.Take()
	defer agents.Drop()
	if err := h.fleet.say(ctx, agents, h.cfg.Recover); err != nil && ctx.Err() == nil {
		h.cfg.Log.Warn("the other servers could not be told which agents this one has", "error", err)
	}
}

// errUnannounced is why nothing runs before the store has accepted the process's lease.
func errUnannounced() error {
	return thread.StoreError(fmt.Errorf("%w: it has not accepted this server's lease yet", store.ErrRefused))
}

// agreeEvery is how many renewals are for one time that the servers agree. They also do when contact
// has begun: while it was broken, the others may have agreed without this one.
const agreeEvery = 3

// keep renews the process's lease three times per lease period. While the servers agree
// on what is written, which takes a while on a slow link, the next renewal is not late.
func (r *renewal) keep() {
	tick := time.NewTicker(r.cfg.Lease / 3)
	defer tick.Stop()
	renewed := make(chan struct{}, 1)
	defer close(renewed)
	r.wg.Go(func() { r.keepAgreeing(renewed) })
	renewals, agreed := 0, clock.Moment{}
	tell := func() {
		agreed = clock.Now()
		select {
		case renewed <- struct{}{}:
		default: // they have not agreed after the last one yet
		}
	}
	for {
		select {
		case <-r.replaced: // the agents, which comes first, so that the order is certain
			tell()
			continue
		default:
		}
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			if !r.renew() {
				continue
			}
			if renewals++; renewals%agreeEvery != 0 && !r.contact.beganAfter(agreed) {
				continue
			}
		case <-r.replaced:
		}
		tell()
	}
}

// keepAgreeing agrees with the others after renewals.
func (r *renewal) keepAgreeing(renewed <-chan struct{}) {
	for range renewed {
		err := routine.Caught(func() error { return r.agree(r.ctx) })
		if err != nil && r.ctx.Err() == nil {
			r.cfg.Observer.LeaseRenewed(err)
			r.cfg.Log.Warn("the servers could not agree on what they write", "error", err)
		}
	}
}

// renew renews the lease once, and says in the log what has changed. It reports whether
// the store has confirmed that.
func (r *renewal) renew() bool {
	announced, away := r.contact.announced(), time.Duration(0)
	err := routine.Caught(func() (err error) {
		away, err = r.hold(r.ctx)
		return err
	})
	if r.ctx.Err() != nil {
		return false
	}
	r.cfg.Observer.LeaseRenewed(err)
	if err != nil {
		r.cfg.Log.Warn("the lease could not be renewed", "error", err)
		return false
	}
	if !announced {
		r.cfg.Log.Info("the store accepts writes; runs can begin")
	}
	if away > 0 {
		r.cfg.Log.Info("in contact with the store again; runs of silent servers are taken over after one lease",
			"away", away, "lease", r.cfg.Lease)
	}
	return true
}
