package loop

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// applyUpdates makes the version of the shared state after a successful call, nil if it leaves it as it was, and
// returns what shows it. The caller holds the lock of the state.
func (r *run) applyUpdates(f *finished, message string) (c *thread.SharedChange, events []agui.Event, err error) {
	next, err := updated(f, r.shared.version.State)
	if err == nil && next != nil {
		c, err = r.shared.change(r.ctx, r.agent.Shared, next, func(next json.RawMessage) *thread.SharedChange {
			return r.shared.version.Change(next, thread.SharedAfter(message), r.st.Format, message,
				r.host.Config.Now().Time())
		})
	}
	events = shown(r.w, c)
	if predicted := len(r.agent.Shared.Predictions(f.call.Name)) > 0; predicted && len(events) == 0 && r.w.Predicts() {
		events = append(events, stateShown(r.shared.version))
	}
	return c, events, err
}

// updated returns a state after the updates of a successful call; nil if there are none.
func updated(f *finished, state json.RawMessage) (json.RawMessage, error) {
	if f.result.Failed || len(f.updates) == 0 {
		return nil, nil
	}
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
	return jsonpatch.Clean(state)
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
