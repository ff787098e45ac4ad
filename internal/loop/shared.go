package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// shared is the shared state of a run. Its tools change it on the run's goroutine, and requests of others
// meanwhile.
type shared struct {
	// mu is held from when a version is made until its event is in the journal: so the versions follow one
	// another as in the log.
	mu      sync.Mutex
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

// applyUpdates makes the version of the shared state after a successful call; nil if it leaves it as it was. The
// caller holds mu.
func (r *run) applyUpdates(f *finished, message string) (*thread.SharedChange, error) {
	if f.result.Failed || len(f.updates) == 0 {
		return nil, nil
	}
	state := r.shared.version.State
	if state == nil {
		state = json.RawMessage("null")
	}
	for _, u := range f.updates {
		next, err := u(state)
		if err != nil {
			return nil, err
		}
		if !json.Valid(next) {
			return nil, errors.New("the new state is not JSON")
		}
		state = next
	}
	state, err := jsonpatch.Clean(state)
	if err != nil {
		return nil, err
	}
	return r.shared.change(r.ctx, r.agent.Shared, state, func(next json.RawMessage) *thread.SharedChange {
		return r.shared.version.Change(next, thread.SharedAfter(message), r.st.Format, message,
			r.host.Config.Now().Time())
	})
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

// updates collects the updates of the shared state that a call makes. A tool that was
// given up at its timeout may still add some; they are ignored.
type updates struct {
	mu   sync.Mutex
	list []holdfast.StateUpdate
}

func (u *updates) add(f holdfast.StateUpdate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, f)
}

func (u *updates) take() []holdfast.StateUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.list)
}
