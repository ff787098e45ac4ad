package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// applyUpdates computes the shared state after a successful call, and returns the event
// and the value that store it.
func (r *run) applyUpdates(f *finished, message string) ([]agui.Event, []store.Value, error) {
	if f.result.Failed || len(f.updates) == 0 {
		return nil, nil, nil
	}
	state := r.shared.State
	if state == nil {
		state = json.RawMessage("null")
	}
	for _, u := range f.updates {
		next, err := u(state)
		if err != nil {
			return nil, nil, err
		}
		if !json.Valid(next) {
			return nil, nil, errors.New("the new state is not JSON")
		}
		state = next
	}
	state, err := jsonpatch.Clean(state)
	if err != nil {
		return nil, nil, err
	}
	if err := r.agent.Shared.Check(context.WithoutCancel(r.ctx), state); err != nil {
		return nil, nil, err
	}
	c := r.shared.Change(state, thread.SharedAfter(message), r.st.Format, message, r.host.Config.Now().Time())
	if c == nil {
		return nil, nil, nil
	}
	r.shared, r.st.Shared = c.Shared, c.ID
	return []agui.Event{c.Event(r.w.HasState())}, []store.Value{c.Put}, nil
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
