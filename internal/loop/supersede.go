package loop

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Superseding takes back an answer that cannot be finished. Nothing is removed from the log:
// open items are closed, an event says why, and snapshots bring every watcher to the committed
// state. Takeover, a retry after partial output, and cancel all go this way. The text on the
// screen when a run was cancelled, or has failed, is kept, with a mark.

// supersede takes back the incomplete answer of a living run. name and value are those of
// the event that says why.
func (r *run) supersede(name string, value any) error {
	if err := r.w.CloseOpen(); err != nil {
		return err
	}
	return r.w.Step(r.st.Superseded(r.now(), name, value), func(c *store.Commit, last store.Cursor) {
		r.st.Boundary = last
		r.saveState(c)
	})
}

// A stock client keeps all its reasoning when a snapshot has none, because there are
// servers that never send any. So reasoning that was taken back stays on the screen until
// a snapshot has other reasoning, of which a thread may have none at first.

// reasons reports whether there is reasoning among the messages.
func reasons(messages []agui.Message) bool {
	return slices.ContainsFunc(messages, func(m agui.Message) bool { return m.Role == string(holdfast.RoleReasoning) })
}

// mend returns the snapshot that removes reasoning that was taken back, for the end of an
// answer of these messages; none if it would not help, or nothing is to be removed.
func (r *run) mend(answer []agui.Message) []agui.Event {
	if !r.stale || !reasons(answer) {
		return nil
	}
	r.stale = false
	return []agui.Event{agui.MessagesRef{Leaf: answer[len(answer)-1].ID}}
}

// keepPartial commits the text of a cancelled answer, marked as partial: what people have
// read is not taken away. Calls that were still being written never happened.
func (a *completion) keepPartial() error {
	r := a.r
	r.st.Misfit = nil
	if err := r.w.CloseOpen(); err != nil {
		return err
	}
	kept := a.messages(false)
	for i := range kept {
		if kept[i].Role != string(holdfast.RoleActivity) { // what it shows is whole
			kept[i].Metadata = json.RawMessage(`{"holdfast":{"partial":true}}`)
		}
	}
	if err := r.append(kept, a.shows(kept), journal.Soon, nil); err != nil {
		return err
	}
	if len(a.sequence)+len(kept) == 0 {
		return nil
	}
	// The snapshot shows the mark, and removes calls that were still being written.
	return r.w.Step([]agui.Event{agui.MessagesRef{Leaf: r.st.Leaf}}, func(c *store.Commit, last store.Cursor) {
		r.st.Boundary = last
		r.saveState(c)
	})
}

// keepFailed closes what the run has shown of an answer in whose middle it has failed, and
// returns what is kept of that.
func (r *run) keepFailed() ([]agui.Message, error) {
	if r.failed == nil {
		return nil, nil
	}
	return thread.FailedOf(r.failed.messages(false)), r.w.CloseOpen()
}

// endCancelled closes what is unfinished and ends the run as cancelled.
func (r *run) endCancelled() error {
	if err := r.closeCalls(thread.TextCancelled); err != nil {
		return err
	}
	return r.finish(cancelled())
}
