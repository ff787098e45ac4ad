package loop

import (
	"github.com/holdfast-agents/holdfast/internal/agui"
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
	r.shared.mu.Lock() // what is shown is the newest version
	defer r.shared.mu.Unlock()
	return r.w.Step(r.st.Superseded(r.now(), name, value), func(c *store.Commit, last store.Cursor) {
		r.st.Boundary, r.st.Steps = last, r.w.OpenSteps()
		r.saveState(c)
	})
}

// A stock client keeps all its reasoning when a snapshot has none, because there are
// servers that never send any. So reasoning that was taken back stays on the screen until
// a snapshot has other reasoning, of which a thread may have none at first.

// mend returns the snapshot that removes reasoning that was taken back, for the end of an
// answer of these messages; none if it would not help, or nothing is to be removed.
func (r *run) mend(answer []agui.Message) []agui.Event {
	if !r.stale || !reasons(answer) {
		return nil
	}
	r.stale = false
	return []agui.Event{agui.MessagesRef{Leaf: answer[len(answer)-1].ID}}
}
