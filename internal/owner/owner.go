package owner

import (
	"context"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The beginning of each commit that gives a thread another owner, or none.

// begun is a run with its first commit in this process. Without a run, the commit leaves
// nothing to run.
type begun struct {
	start    *loop.Start
	c        *store.Commit
	asked    clock.Moment   // when the commit was sent
	seq      agui.Sequencer // after the commit's records
	accepted func()         // called once the store has accepted the commit
	dropped  func()         // called if the commit was unsure and did not land; may be nil
	unsure   bool           // it is not known yet whether the commit has landed; see acquire
	// messages are those of a run that was taken over.
	messages *thread.Undecoded
}

// acquisition prepares a commit after which process owns the thread, or nobody if process
// is empty. The position that was read is its condition.
func (h *house) acquisition(t *thread.Thread, process string) *store.Commit {
	return &store.Commit{
		Key:       t.Key,
		ID:        h.cfg.NewID("c"),
		Expect:    t.Head.Position(),
		User:      t.Head.User,
		Fence:     store.Fence{Epoch: t.Head.Fence.Epoch + 1, Nonce: h.cfg.NewID("")},
		Process:   process,
		UpdatedAt: h.cfg.Now().Time(),
	}
}

// acquired returns a copy of the thread's state for its next owner, in the format that is
// written now. A new thread gets its incarnation.
func (h *house) acquired(t *thread.Thread) *thread.State {
	st := t.State.Clone()
	st.Raise(h.formats.Write())
	st.Waiting = nil
	if st.Incarnation == "" {
		st.Incarnate(t.Key, t.Head.User, h.cfg.NewID(""))
	}
	return st
}

// takeBack notes in st which calls the thread's unfinished answer has shown: the next
// answer would continue them if it used their ids. It returns the stream as the owner left
// it, and passes the answer's events to each.
func (h *house) takeBack(
	ctx context.Context, t *thread.Thread, st *thread.State, each func(agui.Event),
) (agui.Sequencer, error) {
	return h.read.Unfinished(ctx, t, func(ev agui.Event) {
		each(ev)
		if call, ok := ev.(agui.ToolCallStart); ok {
			st.TakeBack(call.ToolCallID)
		}
	})
}
