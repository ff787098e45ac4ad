package owner

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// starter begins runs that were decided upon.
type starter struct {
	*house
	places *places
	claims *claims
}

// begin makes the first commit of a run, and starts its goroutine unless the run only
// stores results.
func (s *starter) begin(ctx context.Context, who holdfast.Principal, p *plan) error {
	// A request that only brings results needs no room: it belongs to a run that began before.
	stored := func(bool) {} // only its first call counts
	if p.d.Do != decide.Keep {
		if s.stopping() {
			return errShuttingDown()
		}
		err := s.places.room(who)
		if err == nil {
			stored, err = s.cfg.Limits.Admit(ctx, who, p.Head == nil)
		}
		if err != nil {
			return err
		}
	}
	next := &begun{dropped: func() { stored(false) }}
	defer func() {
		if !next.unsure {
			stored(false) // which says nothing new about a commit that was accepted
		}
	}()
	b := s.newBeginning(who, p)
	before := b.st.Bytes
	r, err := b.build(ctx)
	counted := func() {
		stored(true)
		s.cfg.Limits.Wrote(who, b.st.Bytes-before)
		for i := range b.over {
			s.host.OutsideEnded(b.place(), &b.over[i])
		}
	}
	switch {
	case err != nil:
	case p.d.Do == decide.Keep:
		if _, err = s.host.CommitAlone(ctx, b.place(), b.c); err == nil {
			counted()
		}
	default:
		next.start, next.c, next.seq = r, b.c, b.seq
		next.accepted = func() {
			counted()
			if p.d.Do == decide.Resume {
				headers.LogTrace(s.cfg.Log, p.rec.Traceparent).Info("resuming agent loop from checkpoint",
					"thread", p.Key.Thread, "run", p.rec.ID, "iteration", r.State.Iteration,
					"continues", p.rec.Continues)
			}
			s.schemas.announce(b.place(), b.change)
		}
		err = s.claims.acquire(ctx, b.place(), next)
	}
	if err != nil {
		return thread.ReadUnlessMoved(p.Key, err)
	}
	return nil
}

// goOn begins a run that goes on with a thread that rests, as an empty-messages POST of its
// owner would, with what has come from outside, which may be nothing. The caller holds the
// thread's lock. A thread that waits for something else is left alone.
func (s *starter) goOn(ctx context.Context, t *thread.Thread, a *loop.OutsideResult) error {
	if a == nil && !t.State.GoesOn(s.cfg.Now().Time()) {
		return nil
	}
	if s.stopping() {
		return errShuttingDown()
	}
	owner := t.Place().Principal
	whole, err := s.read.Load(ctx, owner, t.Key.Thread)
	if err != nil {
		return err
	}
	if whole.Head == nil || whole.Head.ETag != t.Head.ETag {
		return errDecideAgain
	}
	agents := s.Take()
	defer agents.Drop()
	agent, err := agents.OfThread(t)
	if err != nil {
		return err
	}
	in := &agui.RunAgentInput{
		ThreadID:        t.Key.Thread,
		RunID:           s.cfg.NewID("run"),
		MadeUp:          true,
		ProtocolVersion: agui.ProtocolVersion,
	}
	p := &plan{
		Thread:  whole,
		in:      in,
		agent:   agent,
		box:     agent.Toolboxes.Now(),
		arrival: a,
		d:       decide.Decision{Do: decide.Resume},
	}
	return s.begin(ctx, owner, p)
}
