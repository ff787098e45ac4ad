package simulate

import (
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// page is what a client has seen.
type page struct {
	run    string       // the run that it watches
	asked  string       // the request whose answer it is; empty if it did not ask for a run
	echo   string       // the id under which it does, once it has begun
	cursor store.Cursor // of the last record
	of     int          // which of the threads that have had this name has that record
	over   bool         // that run has ended
	open   []agui.Interrupt
	// pending are the calls of the page's own tool that have no results.
	pending []string
	seq     agui.Sequencer // after what it has seen
	shown   shown          // the documents, as it has them
}

// runResult is what is looked at of one.
type runResult struct {
	ThreadID           string           `json:"threadId"`
	RunID              string           `json:"runId"`
	Messages           []agui.Message   `json:"messages"`
	Interrupts         []agui.Interrupt `json:"interrupts"`
	PendingToolCallIDs []string         `json:"pendingToolCallIds"`
}

// wrongIn says what in a result is not so; empty if all is: its run has ended, and its messages are stored.
func (t *truth) wrongIn(r *runResult) string {
	// It may be of a thread that was deleted since.
	lives := append(slices.Clone(t.former[r.ThreadID]), t.of(r.ThreadID))
	if !slices.ContainsFunc(lives, func(k *known) bool { return k.ended(r.RunID) }) {
		return fmt.Sprintf("of the end of %s, which goes on", r.RunID)
	}
	for i := range r.Messages {
		if id := r.Messages[i].ID; !slices.ContainsFunc(lives, func(k *known) bool { return k.has(id) }) {
			return fmt.Sprintf("of %s, which %s has not", id, r.ThreadID)
		}
	}
	return ""
}
