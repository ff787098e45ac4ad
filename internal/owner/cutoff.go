package owner

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The end of a run whose owner is gone and that nobody continues: one commit by the process
// that found it, after which the thread is stopped and has no owner.

// cutOff prepares the end of a run that nobody continues, with reason as its error.
func (h *house) cutOff(ctx context.Context, t *thread.Thread, reason *holdfast.Error) (*begun, error) {
	st, c := t.State.Clone(), h.acquisition(t, "")
	thread.LoseOwner(&st.Work)
	var shown agui.Assembler
	seq, err := h.takeBack(ctx, t, st, func(ev agui.Event) {
		shown.Apply(ev)
		st.Predicted = st.Predicted || thread.IsPredicted(ev)
	})
	if err != nil {
		st.Unlisted = true // the run ends nevertheless
	} else if err := h.keepShown(ctx, c, st, seq, shown.Messages()); err != nil {
		return nil, err
	}
	if err := st.Stop(reason); err != nil {
		return nil, err
	}
	if st.Predicted {
		st.Predicted = false
		c.Records = append(c.Records, agui.Append(nil, agui.StateRef{ID: st.Shared}))
	}
	now := h.cfg.Now().Time()
	ev := agui.NewRunError(reason)
	ev.Timestamp = now.UnixMilli()
	c.Records = append(c.Records, agui.Append(nil, ev))
	last := t.Head.Next + uint64(len(c.Records)) - 1
	st.Boundary, st.Steps = store.Cursor{Number: last, Tag: c.Fence.Tag()}, nil
	st.Advanced()
	if h.cfg.Frequency != loop.Manual || st.Marked != "" {
		thread.AddCheckpoint(c, st, thread.SourceLoop, st.Iteration, now, h.cfg.KeepCheckpoints)
	}
	thread.PutRunEnd(c, st.Run(), st.RunEnd(now, last))
	st.Bytes += thread.BytesOf(c)
	thread.Save(c, st)
	return &begun{c: c, accepted: func() {
		h.cfg.Limits.Wrote(t.Place().Principal, thread.BytesOf(c))
		h.cfg.Ended(t.Key)
		h.cfg.Observer.TakenOver(t.Place(), observe.TakeoverCut, reason.Code)
		h.cfg.Log.Warn("run cut off",
			"thread", t.Key.Thread, "run", st.Run(), "iteration", st.Iteration, "code", reason.Code)
	}}, nil
}

// keepShown has the commit that cuts a run off keep what its owner has shown of an answer, as
// one that has failed, unless what it follows is not there any more. seq is the stream as the
// owner left it.
func (h *house) keepShown(
	ctx context.Context, c *store.Commit, st *thread.State, seq agui.Sequencer, shown []agui.Message,
) error {
	if len(shown) == 0 {
		return nil
	}
	switch _, err := h.read.Store.MessagesOf(ctx, c.Key, []string{st.Leaf}); {
	case errors.Is(err, store.ErrNotFound):
		return nil // the thread is damaged, and its run ends nevertheless
	case err != nil:
		return thread.ReadError(c.Key, err)
	}
	for _, m := range thread.FailedOf(shown) {
		m, data := thread.Stored(m)
		c.Messages = append(c.Messages, store.Message{ID: m.ID, Parent: st.Leaf, Data: data})
		st.Leaf = m.ID
		st.Count++
	}
	for _, ev := range append(seq.Close(), agui.MessagesRef{Leaf: st.Leaf}) {
		c.Records = append(c.Records, agui.Append(nil, ev))
	}
	return nil
}
