package owner

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// A run whose process is gone is an orphan: its thread claims to run, and its owner has
// died, has been silent for a whole lease, or has handed it over. The process that finds it
// (sweep.go) takes it over in three steps: read everything it must know, decide whether the
// run continues here or ends, and commit once (acquire.go), on the condition that the fence
// is the one it saw. If several find it, the store accepts one commit.

// A run that kills its process each time must end. MaxTakeovers is how many times a run is
// taken over without making progress before it is given up. An answer that streams is
// progress, or a slow one would not survive a few deployments; MaxRetaken bounds that,
// because the answer may be what kills the process.
const (
	MaxTakeovers = 3
	MaxRetaken   = 10
)

// takeOver prepares that a run whose owner is gone, or has handed it over, continues here. agent
// is nil if there is none with the thread's work any more. If nobody continues the run, it
// returns why, and the run is to be cut off. The caller holds the thread's lock, and makes the
// commit.
func (o *takeovers) takeOver(
	ctx context.Context, t *thread.Thread, agent *agents.Agent, how loss,
) (_ *begun, refused *holdfast.Error, _ error) {
	lost, err := o.readOrphan(ctx, t, agent, how)
	if err != nil {
		return nil, nil, err
	}
	if lost.refused != nil {
		return nil, lost.refused, nil
	}
	c, err := lost.commit()
	if err != nil {
		return nil, nil, err
	}
	return &begun{
		start:    lost.start,
		c:        c,
		seq:      lost.seq,
		messages: lost.messages,
		accepted: func() {
			o.cfg.Limits.Wrote(t.Place().Principal, thread.BytesOf(c))
			o.cfg.Observer.TakenOver(t.Place(), observe.TakeoverDone, "")
			headers.LogTrace(o.cfg.Log, lost.start.Rec.Traceparent).Info("resuming agent loop from checkpoint",
				"thread", t.Key.Thread, "run", t.State.Run(), "iteration", t.State.Iteration, "takeover", true)
			lost.announceAdopted()
			o.schemas.announce(t.Place(), lost.states.change)
		},
	}, nil, nil
}

// orphan is a run whose owner is gone, and what was decided about it.
type orphan struct {
	*house
	t *thread.Thread
	loss
	// refused is why nobody continues it; nil if start does.
	refused *holdfast.Error
	start   *loop.Start
	states  *restored
	// messages are those of start, which gets them once it is known that this process has
	// become the owner: of several that try to, the others have not decoded them.
	messages *thread.Undecoded
	found    *thread.Resumable
	// seq is the stream as the owner left it, and streamed means that the owner has shown
	// a part of an answer.
	seq      agui.Sequencer
	streamed bool
	// adopted is the revision that the run was with before this takeover; empty if it stays
	// with its own, or has none.
	adopted string
}

// readOrphan reads what a takeover needs, and decides.
func (h *house) readOrphan(ctx context.Context, t *thread.Thread, agent *agents.Agent, how loss) (*orphan, error) {
	o := &orphan{house: h, t: t, loss: how}
	switch {
	case agent == nil:
		o.refused = agents.Gone(t.State.Agent)
	case t.State.Retaken >= MaxRetaken && how.why != handedOver:
		o.refused = errGaveUp(t.State.Retaken)
	case !h.cfg.Recover:
		o.refused = thread.CutOff(t.State.Iteration)
	}
	if o.refused != nil {
		return o, nil
	}
	found, err := h.read.Orphan(ctx, t)
	if h.isDamaged(ctx, t, err) {
		o.refused = holdfast.AsError(err)
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	if err := thread.CheckStale(t.Key, t.State, found.Undecoded.Messages); err != nil {
		o.refused = holdfast.AsError(err)
		return o, nil
	}
	o.start = &loop.Start{
		Key:       t.Key,
		Rec:       found.Run,
		Agent:     agent,
		State:     h.acquired(t),
		History:   found.History,
		Shared:    found.Shared,
		Recorded:  found.Recorded,
		Doubted:   found.Started,
		Resumed:   true,
		TakenOver: true,
		Cancelled: how.cancelled,
	}
	found.StartAgain(o.start.State)
	o.messages, o.found = found.Undecoded, found
	if err := o.restoreStates(ctx); err != nil || o.refused != nil {
		return o, err
	}
	o.seq, err = h.takeBack(ctx, t, o.start.State, func(ev agui.Event) {
		o.streamed = o.streamed || agui.EventType(ev).IsDelta()
	})
	switch {
	case h.isDamaged(ctx, t, err):
		o.refused, err = holdfast.AsError(err), nil
	case err == nil && t.State.Takeovers >= MaxTakeovers && !o.streamed && how.why != handedOver:
		o.refused = errGaveUp(t.State.Takeovers)
	}
	return o, err
}

// isDamaged reports whether err means that nobody will ever continue the run, because a part
// of its thread is damaged. A thread written by a newer version is left to that one.
func (h *house) isDamaged(ctx context.Context, t *thread.Thread, err error) bool {
	return thread.Unreadable(err) && !errors.Is(err, store.ErrVersionTooNew) && !h.read.Moved(ctx, t, err)
}

// restoreStates restores the middleware's states. It sets refused if they do not allow
// the run to continue.
func (o *orphan) restoreStates(ctx context.Context) (err error) {
	o.states, err = o.schemas.restore(ctx, o.t.Key, o.start.State, o.start.Agent)
	var refused *holdfast.Error
	if errors.As(err, &refused) && refused.Code != codes.StoreUnavailable {
		o.refused = refused
		return nil
	}
	if err != nil {
		return err
	}
	o.start.Live = o.start.Agent.Schema.Live(o.states.states)
	o.start.State.Follow(o.start.Live)
	return nil
}

// commit returns the commit of the takeover: it closes what the owner left open, says why,
// and brings every watcher to the committed state.
func (o *orphan) commit() (*store.Commit, error) {
	st := o.start.State
	reason := "handed_over"
	if o.why != handedOver { // which is done once all is stored
		thread.LoseOwner(&st.Work)
		o.count()
		reason = "owner_gone"
	}
	c := o.acquisition(o.t, o.process)
	value := thread.Takeover(o.t.Head, c, st.Iteration, reason)
	c.Put = append(o.states.put, o.adopt(c, value))
	o.found.RenewIntents(c, o.start.State)
	events := o.seq.Close()
	open := len(events)
	events = append(events, st.Superseded(o.cfg.Now().UnixMilli(), "holdfast.takeover", value)...)
	events = append(events, o.schemas.event(o.states.change)...)
	for _, ev := range events[open:] {
		if _, err := o.seq.Next(ev); err != nil {
			return nil, fmt.Errorf("take over: %w", err)
		}
	}
	c.Records = thread.EncodeEvents(events)
	st.Boundary, st.Steps = store.Cursor{Number: o.t.Head.Next - 1 + uint64(len(events)), Tag: c.Fence.Tag()}, nil
	st.Bytes += thread.BytesOf(c)
	thread.Save(c, st)
	return c, nil
}

// adopt returns how the run began as the commit of the takeover stores it: with this process,
// and with the revision of its agent here, which it also notes in the value of the event.
func (o *orphan) adopt(c *store.Commit, value map[string]any) store.Value {
	rec := *o.start.Rec
	from, to := rec.Revision, o.start.Agent.Revision
	if !o.cancelled && to != "" && from != to {
		if o.adopted, rec.Revision = from, to; from != "" {
			value["fromRevision"], value["toRevision"] = from, to
		}
	}
	rec.Format = o.start.State.Format
	rec.OwnedBy(c)
	o.start.Rec = &rec
	return store.Value{Kind: store.KindRun, ID: rec.ID, Data: thread.MustJSON(rec)}
}

// announceAdopted says in the log that a run that was taken over has another revision now.
func (o *orphan) announceAdopted() {
	if o.adopted != "" {
		rec := o.start.Rec
		o.cfg.Log.Info("a run goes on with another revision of its agent",
			"thread", o.t.Key.Thread, "run", rec.ID, "agent", rec.Agent, "from", o.adopted, "to", rec.Revision)
	}
}

// count counts the takeover. A run that is handed over has not killed its process.
func (o *orphan) count() {
	st := o.start.State
	if o.streamed {
		st.Takeovers = 0
	}
	st.Takeovers++
	st.Retaken++
}
