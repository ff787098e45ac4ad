package loop

import (
	"context"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
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

// SideRun is a run that is stored nowhere and ends with its request.
type SideRun struct {
	*run
	dialect agui.Dialect
	log     *watch.Streams // of the run's own store
}

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
	place, err := e.takeSlot(who)
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
	h := aside(e.host)
	b := h.newBeginning(who, p)
	b.r.side = true
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
	s := &SideRun{run: b.r, dialect: agui.DialectOf(p.in.ProtocolVersion), log: e.streams.Aside(h.cfg.Store)}
	if err := s.launch(ctx, e, b, place); err != nil {
		return nil, err
	}
	return s.reply(ctx), nil
}

// aside returns a host for one side run.
func aside(h *host) *host {
	cfg := h.cfg
	cfg.Store = sideStore{h.cfg.Memory(), h.cfg.Store}
	cfg.Limits, cfg.Ended = nil, func(store.ThreadKey) {} // nothing is kept that could count, or be archived
	cfg.Observer.Committed = func(holdfast.Iteration, *store.Commit, time.Duration, error) {}
	alone := &host{
		cfg:      cfg,
		read:     thread.Reader{Store: cfg.Store},
		used:     h.used,
		process:  h.process,
		contact:  h.contact,
		formats:  h.formats,
		ctx:      h.ctx,
		stop:     h.stop,
		writers:  h.writers,
		draining: h.draining,
	}
	alone.schemas = &schemas{cfg: &alone.cfg, serving: h.Serving}
	return alone
}

// launch starts the run's goroutine, which ends with ctx, and takes over the slot.
func (s *SideRun) launch(ctx context.Context, e *Engine, b *beginning, place *slot) error {
	r, head := s.run, thread.HeadAfter(b.c)
	r.prepare(e, head, thread.RecordsOf(b.c))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping() {
		r.cancel(errStopped)
		return errShuttingDown()
	}
	r.w = journal.New(r.writerConfig(clock.Now()), head, b.seq)
	r.owner = owner{sole: true}
	e.cfg.Observer.RunStarted(r.place(), false, 0)
	e.sides[r] = true
	place.kept = true
	stay := context.AfterFunc(ctx, func() { r.cancel(errCancelled) })
	e.wg.Go(func() {
		defer stay()
		r.main()
		r.host.wg.Wait()
	})
	return nil
}

// reply returns the run's stream. The run ends if nobody reads it any more.
func (s *SideRun) reply(ctx context.Context) *agui.Reply {
	over := func() { s.cancel(errCancelled) }
	return s.log.Side(ctx, s.feed, s.key, s.rec, watch.Viewer{Dialect: s.dialect}, over, s.now)
}
