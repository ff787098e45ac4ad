package agenttest

import (
	"encoding/json"
	"net/http"

	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// State returns a state as the newest checkpoint of the thread holds it: what another
// process would continue with, migrated if it was written by an older version. A
// state that was never written has its initial value.
func State[T any](h *Harness, key *state.Key[T]) T {
	h.t.Helper()
	value, err := key.Get(h.states())
	if err != nil {
		h.t.Fatalf("agenttest: the state %s cannot be read: %v", key.StateName(), err)
	}
	return value
}

// StateJSON returns the states of the middleware as the API shows them to the
// thread's owner, redacted where a state asks for it; nil if there are none.
func (h *Harness) StateJSON() json.RawMessage {
	h.t.Helper()
	w := h.ask("GET", h.path("/state"), nil, "")
	switch w.Code {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil
	default:
		h.t.Fatalf("agenttest: the states cannot be shown: %d %s", w.Code, w.Body)
	}
	var state threads.State
	h.read("the state", w.Body.Bytes(), &state)
	return state.MiddlewareState
}

// states reads those of the newest checkpoint from the store, since the API shows
// them redacted.
func (h *Harness) states() *state.States {
	h.t.Helper()
	states, err := offline.StoredStates(h.t.Context(), h.cfg.Store,
		store.ThreadKey{Tenant: h.on.who.Tenant, Thread: h.on.name})
	if err != nil {
		h.t.Fatalf("agenttest: the states cannot be read: %v", err)
	}
	return states
}
