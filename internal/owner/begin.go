package owner

import (
	"cmp"
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// A run begins with one commit: conditional on the head that the request was decided
// upon, it holds the run, RUN_STARTED, the new messages, what an answer or a policy does
// to open calls, and the input checkpoint, and makes this process the owner. This file
// builds that commit and, with it, the run that is launched once the store has accepted
// it. Nothing happens before; a commit that is refused leaves no trace.

// beginning is the first commit of a run while it is built.
type beginning struct {
	*house
	p   *plan
	c   *store.Commit
	seq agui.Sequencer // after the commit's records
	r   *loop.Start    // what is launched
	// change is what has changed in the schema of the states; nil if nothing has.
	change *state.SchemaChange
	st     *thread.State // the run's, a copy of the thread's
	// over are the outside calls that are closed.
	over []thread.Call
}

// place returns where the run begins.
func (b *beginning) place() holdfast.Iteration {
	return holdfast.Iteration{
		Agent:       b.p.agent.Name,
		Principal:   holdfast.Principal{Tenant: b.p.Key.Tenant, User: b.p.rec.User},
		Thread:      b.p.Key.Thread,
		Run:         b.p.rec.ID,
		Number:      b.st.Iteration,
		Traceparent: b.p.rec.Traceparent,
	}
}

// newBeginning prepares the commit. A thread that does not exist gets an empty head.
func (h *house) newBeginning(who holdfast.Principal, p *plan) *beginning {
	t := p.Thread
	if t.Head == nil {
		t.Head = &store.Head{Key: t.Key, User: who.User, Next: 1}
		t.State = thread.New()
		t.State.CreatedAt = h.cfg.Now().UTC()
		t.History = thread.NewHistory()
	}
	c, st := h.acquisition(t, h.process), h.acquired(t)
	p.rec = p.runRecord(h.cfg, who)
	p.rec.Format = st.Format
	p.rec.OwnedBy(c)
	r := &loop.Start{
		Key:     t.Key,
		Rec:     p.rec,
		Agent:   p.agent,
		Tools:   p.box,
		State:   st,
		Resumed: p.d.Do == decide.Resume,
	}
	return &beginning{
		house: h,
		p:     p,
		c:     c,
		st:    st,
		r:     r,
	}
}

// runRecord returns how the run begins, as it is stored.
func (p *plan) runRecord(cfg *loop.Config, who holdfast.Principal) *thread.Run {
	rec := &thread.Run{
		ID:             cmp.Or(p.d.Run, p.in.RunID),
		Agent:          p.agent.Name,
		Revision:       p.agent.Revision,
		User:           who.User,
		Hash:           p.req.Hash,
		ParentRunID:    p.in.ParentRunID,
		Traceparent:    p.in.Traceparent,
		StartedAt:      cfg.Now().Time(),
		Durability:     cfg.Durability,
		Tools:          p.in.Tools,
		Context:        p.in.Context,
		ForwardedProps: p.in.ForwardedProps,
	}
	for _, m := range p.req.Compared.Instructions {
		rec.Instructions = append(rec.Instructions, m.AppendJSON(nil))
	}
	return rec
}

// build fills the commit in and returns the run that it begins.
func (b *beginning) build(ctx context.Context) (*loop.Start, error) {
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	if _, err := b.host.Measured(ctx, b.p.Key, b.st, true); err != nil {
		return nil, err
	}
	// Results belong right after their calls, also when the thread branches off.
	for _, m := range b.p.req.Compared.Results {
		b.st.CloseCall(m.ToolCallID)
		b.add(m)
	}
	if err := b.events(); err != nil {
		return nil, err
	}
	if err := b.states(ctx); err != nil {
		return nil, err
	}
	proceed := b.fresh
	if b.p.d.Do == decide.Resume {
		proceed = b.resume
	}
	b.p.arrival.Give(b.c, b.st, b.p.rec.ID)
	if err := proceed(ctx); err != nil {
		return nil, err
	}
	b.messages()
	if b.p.d.Do != decide.Keep {
		b.st.Instruct(b.p.rec.Instructions)
	}
	b.st.MakeTitle(b.r.History.Path)
	if err := b.st.Begin(b.p.rec.ID, b.p.agent.Name); err != nil {
		return nil, err
	}
	if b.p.d.Do == decide.Keep {
		if err := b.stored(); err != nil {
			return nil, err
		}
	}
	b.snapshotLeaf()
	last := b.c.Expect.Next - 1 + uint64(len(b.c.Records))
	if b.p.d.Do == decide.Keep {
		thread.PutRunEnd(b.c, b.p.rec.ID, b.st.RunEnd(b.cfg.Now().Time(), last))
	}
	b.st.Boundary, b.st.Steps = store.Cursor{Number: last, Tag: b.c.Fence.Tag()}, nil
	if b.cfg.Frequency != loop.Manual {
		input := thread.Checkpoint{Source: thread.SourceInput, Step: -1, Parent: b.st.LastCheckpoint}
		thread.PutCheckpoint(b.c, b.st, input, b.cfg.Now().Time(), b.cfg.KeepCheckpoints)
	}
	b.c.Put = append(b.c.Put, store.Value{Kind: store.KindRun, ID: b.p.rec.ID, Data: thread.MustJSON(b.p.rec)})
	b.st.Bytes += thread.BytesOf(b.c)
	thread.Save(b.c, b.st)
	return b.r, nil
}

// onlyResults reports whether the run brings the results of frontend calls and nothing
// else. Such a run continues the work of the run before it.
func (b *beginning) onlyResults() bool {
	return len(b.p.req.Compared.Users) == 0 && len(b.p.req.Compared.Results) > 0
}

// states restores the middleware's states, and says what has changed in their schema.
func (b *beginning) states(ctx context.Context) error {
	if b.p.d.Do == decide.Keep {
		return nil // nothing runs: they stay as they are
	}
	restored, err := b.schemas.restore(ctx, b.p.Key, b.st, b.p.agent)
	if err != nil {
		return err
	}
	if b.p.d.Do == decide.Fresh && !b.onlyResults() {
		restored.states = b.p.agent.Schema.NewRun(restored.states)
	}
	b.r.Live = b.p.agent.Schema.Live(restored.states)
	b.st.Follow(b.r.Live)
	b.c.Put = append(b.c.Put, restored.put...)
	b.change = restored.change
	for _, ev := range b.schemas.event(restored.change) {
		if err := b.record(ev); err != nil {
			return err
		}
	}
	return nil
}

// load reads what the run works with and, if it resumes another run, that run.
func (b *beginning) load(ctx context.Context) error {
	b.p.rec.After = b.p.Last()
	if b.p.d.Do != decide.Resume {
		g, err := b.read.Ground(ctx, b.p.Thread)
		b.r.Ground(g)
		return err
	}
	if err := thread.CheckStale(b.p.Key, b.st, len(b.p.History.Path)); err != nil {
		if !b.p.req.Policy.AllowStale {
			return err
		}
		b.cfg.Log.Warn("resuming with a stale checkpoint, as asked",
			"thread", b.p.Key.Thread, "expected", b.st.Count, "actual", len(b.p.History.Path))
		b.st.Count = len(b.p.History.Path)
	}
	old, err := b.read.Resumable(ctx, b.p.Thread)
	if err != nil {
		return err
	}
	b.r.Ground(old.Ground)
	b.r.Doubted = old.Started
	old.StartAgain(b.st)
	b.inherit(old)
	return nil
}

// inherit takes the trace, tools, context and properties of the stopped run where the input of
// a resume has none of its own.
func (b *beginning) inherit(old *thread.Resumable) {
	rec := b.p.rec
	rec.Continues = old.Run.ID
	rec.Traceparent = cmp.Or(rec.Traceparent, old.Run.Traceparent)
	if len(rec.Tools) == 0 {
		rec.Tools = old.Run.Tools
	}
	if len(rec.Context) == 0 {
		rec.Context = old.Run.Context
	}
	if len(rec.ForwardedProps) == 0 {
		rec.ForwardedProps = old.Run.ForwardedProps
	}
	if len(rec.Instructions) == 0 {
		rec.Instructions = old.Run.Instructions
	}
	ended := old.End
	if ended == nil { // its process died before it could store the end
		end := b.st.RunEnd(b.p.Head.UpdatedAt, b.p.Head.Next-1)
		ended = &end
	}
	ended.ContinuedBy = rec.ID
	thread.PutRunEnd(b.c, old.Run.ID, *ended)
}

// record adds an event to the commit's records.
func (b *beginning) record(ev agui.Event) error {
	if _, err := b.seq.Next(ev); err != nil {
		return err
	}
	b.c.Records = append(b.c.Records, agui.Append(nil, ev))
	return nil
}

// events opens the stream with RUN_STARTED.
func (b *beginning) events() error {
	base := agui.Base{Timestamp: b.cfg.Now().UnixMilli(), Metadata: thread.ProcessMark(b.process, b.r.Side)}
	return b.record(agui.RunStarted{
		Base:            base,
		ThreadID:        b.p.Key.Thread,
		RunID:           b.p.rec.ID,
		ParentRunID:     b.p.rec.ParentRunID,
		ProtocolVersion: agui.ProtocolVersion,
	})
}

// snapshotLeaf adds the snapshots that a resume needs, and a client whose list differs
// from the history. It comes last, because only then the leaf is known, but it puts them
// right after RUN_STARTED.
func (b *beginning) snapshotLeaf() {
	resume := b.p.d.Do == decide.Resume
	if b.r.Side || !resume && !b.p.req.Compared.Resync && b.p.d.Close == decide.CloseNothing {
		return
	}
	var refs [][]byte
	if b.p.req.Compared.Reorder {
		refs = append(refs, agui.Append(nil, agui.MessagesRef{}))
	}
	if !resume || !b.known() {
		refs = append(refs, agui.Append(nil, agui.MessagesRef{Leaf: b.st.Leaf, Then: b.st.Queued}))
		b.p.with = b.r.History.Steps()
	}
	if resume {
		state := agui.StateRef{ID: b.st.Shared}
		_, _ = b.seq.Next(state) // it may always come
		refs = append(refs, agui.Append(nil, state))
	}
	b.c.Records = append(b.c.Records[:1:1], append(refs, b.c.Records[1:]...)...)
}

// known reports whether a client that answers questions has told that it has all of the
// history that its run goes on with. After anything but a question it may show a part of an
// answer that was given up.
func (b *beginning) known() bool {
	return len(b.p.d.Answers) > 0 && len(b.st.Queued) == 0 && b.p.req.Compared.Stands == b.st.Leaf
}

// fresh prepares a run with new messages: it closes what is open, merges the shared
// state if the client sent one, and counts iterations from 0.
func (b *beginning) fresh(ctx context.Context) error {
	if b.p.d.Do == decide.Fresh {
		if err := b.closeOpen(ctx); err != nil {
			return err
		}
		b.st.Answers, b.st.Question = nil, nil
		// The results of frontend calls close the iteration that made them.
		if !b.onlyResults() {
			b.st.Iteration, b.st.Open, b.st.OnlyRecorded, b.st.Model = 0, false, false, ""
		}
	}
	b.st.Ending, b.st.Marked = nil, ""
	if b.branches() {
		if err := b.branch(ctx); err != nil {
			return err
		}
	} else if b.p.d.Do == decide.Fresh && len(b.p.req.Compared.Users) > 0 {
		b.forget()
	}
	if err := (sharing{b}).share(ctx); err != nil {
		return err
	}
	thread.ClearMarks(b.c)
	return nil
}

// closeOpen gives the calls without a result one that says why, so that the history is
// well formed.
func (b *beginning) closeOpen(ctx context.Context) error {
	if len(b.st.Calls) == 0 {
		return nil
	}
	started, err := b.read.Started(ctx, b.p.Key)
	if err != nil {
		return err
	}
	text := map[decide.Closing]string{decide.CloseDeclined: thread.TextDeclined,
		decide.CloseAbandoned: thread.TextAbandoned, decide.CloseNotAnswered: thread.TextNotAnswered}[b.p.d.Close]
	if text == "" {
		text = thread.TextNotAnswered
	}
	ctx = store.ContextWithLedger(state.ContextWith(ctx, b.r.Live), b.cfg.Store)
	ctx = holdfast.ContextWithRun(ctx, &holdfast.RunContext{Iteration: b.place})
	var left []thread.Call
	for i := range b.st.Calls {
		call := &b.st.Calls[i]
		if call.Finished() != nil && !b.branches() {
			left = append(left, *call) // the run makes it the call's result
			continue
		}
		b.close(ctx, call, text, started[call.ID])
	}
	b.st.Calls = left
	return nil
}

// close gives a call without a result one that says why: text, or what is known of a call
// that is finished from outside.
func (b *beginning) close(ctx context.Context, call *thread.Call, text string, started bool) {
	result := holdfast.ToolResult{Text: text}
	if call.Outside != nil {
		result = b.r.Closing(ctx, b.host, call, text)
		thread.PutOutsideEnd(b.c, call, b.cfg.Now().Time())
		b.over = append(b.over, *call)
	}
	m := agui.FromDomain(holdfast.Message{Role: holdfast.RoleTool, CallID: call.ID, Text: result.Text,
		Parts: result.Parts})
	switch {
	case result.Failed:
		m.Metadata = thread.FailedMark(false, "")
	case call.Own != nil: // it was begun elsewhere, whatever is known here
		m.Metadata = call.WithFacts(nil, "")
	case call.Outside == nil && !started && b.p.repeatsMatter(call.Name):
		m.Metadata = thread.FailedMark(true, "") // so that no branch takes it for one that was made
	}
	b.add(m)
}

// leaveTo goes back to a message and the results that follow it: calls and results are never
// separated. The messages after it stay in the tree as another branch.
func (b *beginning) leaveTo(parent string) {
	old := b.r.History
	h := thread.NewHistory()
	h.Elsewhere, h.Calls, h.Branched = old.Elsewhere, old.Calls, true
	keep := 0
	if parent != "" {
		last, _ := old.WholeFrom(old.Index[parent])
		parent, keep = old.Path[last].ID, last+1
	}
	for i := range old.Path {
		if i < keep {
			h.Add(old.Path[i], old.Raw[i])
		} else {
			h.Elsewhere[old.Path[i].ID] = old.Path[i].Role
		}
	}
	b.r.History = h
	b.st.Leaf, b.st.Count = parent, len(h.Path)
	b.st.Prompt = b.st.Prompt.Branched()
}

// messages adds the new messages to the tree. While calls are open, new user messages
// wait for their results.
func (b *beginning) messages() {
	if len(b.st.Calls) > 0 {
		b.st.Queued = append(b.st.Queued, thread.RawMessages(b.p.req.Compared.Users)...)
		return
	}
	for _, m := range b.st.TakeQueued() {
		b.add(m)
	}
	for _, m := range b.p.req.Compared.Users {
		b.add(m)
	}
}

// add appends a message to the tree. A message without an id gets one.
func (b *beginning) add(m agui.Message) {
	if m.ID == "" {
		m.ID = b.cfg.NewID("msg")
	}
	m, data := thread.Stored(m)
	b.c.Messages = append(b.c.Messages, store.Message{ID: m.ID, Parent: b.st.Leaf, Data: data})
	b.st.Leaf = m.ID
	b.r.History.Add(m, data)
	b.st.Count = len(b.r.History.Path)
}

// stored ends a run that only brought some of the results that the frontend owes. Its
// RUN_FINISHED names the rest.
func (b *beginning) stored() error {
	if err := b.st.End(holdfast.OutcomeSuccess); err != nil {
		return err
	}
	b.c.Process = ""
	ev := agui.RunFinished{ThreadID: b.p.Key.Thread, RunID: b.p.rec.ID, Outcome: &agui.Outcome{
		Type: agui.OutcomeSuccess, PendingToolCallIDs: b.st.PendingFrontend(),
	}}
	ev.Timestamp, ev.Metadata = b.cfg.Now().UnixMilli(), thread.OutsideMetadata(b.st.OutsideCalls())
	for _, said := range thread.OutsideNotice(b.st.OutsideCalls(), ev.Timestamp) {
		if err := b.record(said); err != nil {
			return err
		}
	}
	return b.record(ev)
}
