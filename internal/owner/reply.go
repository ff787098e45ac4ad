package owner

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/watch"
	"github.com/holdfast-agents/holdfast/store"
)

// The answer to a POST: it is decided (post.go), as often as the thread moves meanwhile, and
// answered with the stream of a run (package watch), of a side run (side.go), or with an
// error.

// Post serves POST /runs: it decides, and then starts, resumes, attaches or hydrates. The
// reply is the stream to send; nil if in.After is the end of it. An input without a run id
// gets one. An error means that nothing was started and nothing was lost.
func (e *Engine) Post(
	ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput,
) (*agui.Reply, error) {
	routine.WarmLargeStack()
	if e.stopping() {
		return nil, errShuttingDown()
	}
	if agent != "" {
		if _, err := e.Agents().
			Named(agent); err != nil &&
			e.residents.local(store.ThreadKey{Tenant: who.Tenant, Thread: in.ThreadID}) == nil {
			return nil, err
		}
	}
	if in.RunID == "" {
		in.RunID, in.MadeUp = e.cfg.NewID("run"), true
	}
	a := &asking{who: who, agent: agent, in: in, verdicts: decide.Verdicts{}}
	defer a.owner.end()
	for tries := 0; tries < maxDecisions; {
		reply, err := e.try(ctx, a)
		var s *silence
		var open *openChecks
		switch {
		case errors.As(err, &s):
			if err := e.takeovers.outwait(ctx, &a.owner, s); err != nil {
				return nil, err
			}
		case errors.As(err, &open):
			if err := e.checker.find(ctx, who, open.checks, a.verdicts); err != nil {
				return nil, err
			}
			tries++
		case errors.Is(err, errDecideAgain), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
			tries++
		default:
			return reply, err
		}
	}
	return nil, thread.KeptChanging()
}

// try decides once and acts on it.
func (e *Engine) try(ctx context.Context, a *asking) (*agui.Reply, error) {
	p, err := e.decider.decided(ctx, a)
	if err != nil {
		return nil, err
	}
	in := a.in
	if p.d.Warning != "" {
		e.cfg.Log.Warn(p.d.Warning, "thread", in.ThreadID, "run", in.RunID)
	}
	if p.aside {
		return beginSide(ctx, e, a.who, p)
	}
	if p.d.Do == decide.Reject {
		return nil, p.d.Err.With("threadId", in.ThreadID)
	}
	if p.d.Do == decide.Cancel {
		return nil, e.cancelAndWait(ctx, p.Thread)
	}
	stream, err := p.streamOf(ctx, e.streams)
	if err != nil {
		return nil, e.decider.orAgain(ctx, p.Thread, err)
	}
	return stream.Reply(ctx), nil
}

// streamOf returns the stream that answers a POST; nil if the client has all of it. A run that
// begins is shown whole, whatever the client has seen before.
func (p *plan) streamOf(ctx context.Context, s *watch.Streams) (*watch.Stream, error) {
	v := watch.Viewer{Dialect: agui.DialectOf(p.in.ProtocolVersion)}
	switch p.d.Do {
	case decide.FromStart:
		v.Echo = p.in.RunID
		return s.After(ctx, p.Thread, p.d.Run, store.Cursor(p.in.After), v)
	case decide.Attach, decide.Hydrate:
		if !p.in.MadeUp { // nobody knows a made-up id
			v.Echo = p.in.RunID
		}
		v.Stands = p.req.Compared.Stands
		return s.Current(ctx, p.Thread, store.Cursor(p.in.After), v)
	}
	v.Echo = p.in.RunID
	return s.Begun(p.Key, p.rec, p.with, v), nil
}
