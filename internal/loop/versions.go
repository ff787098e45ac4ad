package loop

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// shared is the shared state of a run. Its tools change it on the run's goroutine, and requests of others
// meanwhile.
type shared struct {
	// mu is held from when a version is made until its event is in the journal: so the versions follow one
	// another as in the log. At the end of a run that takes as long as the store does.
	mu      routine.Lock
	version thread.Shared
}

// now returns the version that there is now.
func (s *shared) now() thread.Shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// into returns a function that puts a change into a commit, in the journal's turn; c may be nil.
func into(st *thread.State, c *thread.SharedChange) func(*store.Commit) {
	return func(to *store.Commit) {
		if c != nil {
			st.Shared, to.Put = c.ID, append(to.Put, c.Put)
		}
	}
}

// shown returns what shows a change; c may be nil. The caller holds mu.
func shown(w *journal.Writer, c *thread.SharedChange) []agui.Event {
	if c == nil {
		return nil
	}
	return []agui.Event{c.Event(w.HasState())}
}

// change makes a version of the shared state; nil if that is the one that there is. The caller holds mu.
func (s *shared) change(
	ctx context.Context, form *agents.Shared, next json.RawMessage, of func(next json.RawMessage) *thread.SharedChange,
) (*thread.SharedChange, error) {
	if err := form.Check(context.WithoutCancel(ctx), next); err != nil {
		return nil, err
	}
	c := of(next)
	if c != nil {
		s.version = c.Shared
	}
	return c, nil
}
