package owner

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/watch"
	"github.com/holdfast-agents/holdfast/store"
)

// Side runs: what a page asks the model beside its conversation, such as what the person could
// say next. A request that forces one of its own tools on a thread without history is one. It
// goes the way of every run, but in a store of its own, in memory, which is gone with it: no
// thread comes of it, no list or title shows it, and its stream has no cursors. The model makes
// one answer, is offered only the forced tool, and no tool runs here. The run ends with the
// connection of its client. It takes a slot, and counts for the limits and budgets of its
// tenant and user, whose accounts are in the server's store.

// sideStore keeps threads in a store of a side run's own, and accounts where they always are.
type sideStore struct {
	store.Store
	ledger store.Ledger
}

// Reserve implements [store.Ledger].
func (s sideStore) Reserve(ctx context.Context, r *store.Reservation) error {
	return s.ledger.Reserve(ctx, r)
}

// Settle implements [store.Ledger].
func (s sideStore) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	return s.ledger.Settle(ctx, tenant, id, actual)
}

// Used implements [store.Ledger].
func (s sideStore) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	return s.ledger.Used(ctx, tenant, accounts)
}

// beginSide begins the side run that was asked for, and returns its stream.
func beginSide(ctx context.Context, e *Engine, who holdfast.Principal, p *plan) (*agui.Reply, error) {
	place, err := e.places.take(who)
	if err != nil {
		return nil, err
	}
	defer place.release()
	if !p.agent.Of.Hold() {
		return nil, errDecideAgain // somebody has dropped them who uses them
	}
	place.agents = p.agent.Of
	alone := *p.agent
	alone.Form = nil // the arguments of the call are the answer
	p.agent, p.box = &alone, &agents.Toolbox{ByName: map[string]holdfast.Tool{}}
	h := e.house.aside(sideConfig(*e.cfg))
	b := h.newBeginning(who, p)
	b.r.Side = true
	for _, t := range p.in.Tools {
		if t.Name == p.forced {
			p.rec.Tools = []agui.Tool{t}
		}
	}
	if _, err := b.build(ctx); err != nil {
		return nil, err
	}
	if err := h.Commit(ctx, b.place(), b.c); err != nil {
		return nil, err
	}
	one := loop.New(h.host, b.r, thread.HeadAfter(b.c), thread.RecordsOf(b.c))
	r := &resident{run: one, start: b.r, feed: one.Feed(), done: make(chan struct{})}
	if err := e.residents.launchSide(ctx, r, one.Cancel, b.seq, h.wg, place); err != nil {
		return nil, err
	}
	v := watch.Viewer{Dialect: agui.DialectOf(p.in.ProtocolVersion)}
	over := func() { one.Cancel(holdfast.ErrCancelled) } // if nobody reads it any more
	now := func() int64 { return e.cfg.Now().UnixMilli() }
	return e.streams.Aside(h.cfg.Store).Side(ctx, r.feed, b.r.Key, b.r.Rec, v, over, now), nil
}

// sideConfig returns the configuration of a side run.
func sideConfig(cfg loop.Config) loop.Config {
	cfg.Store = sideStore{cfg.Memory(), cfg.Store}
	cfg.Limits, cfg.Ended = nil, func(store.ThreadKey) {} // nothing is kept that could count, or be archived
	cfg.Observer.Committed = func(holdfast.Iteration, *store.Commit, time.Duration, error) {}
	return cfg
}
