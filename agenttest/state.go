package agenttest

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/holdfast-agents/holdfast"
)

// State returns a state as the newest checkpoint of the thread holds it: what
// another process would go on with, migrated if it was written in an older version.
// A state that nobody has written has its initial value.
func State[T any](h *Harness, key *holdfast.StateKey[T]) T {
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
	var state holdfast.ThreadState
	h.read("the state", w.Body.Bytes(), &state)
	return state.MiddlewareState
}

// stored is what this package reads of a checkpoint. The API has no state that is
// redacted as it is.
type stored struct {
	State struct {
		Schema   string                     `json:"sig"`
		States   map[string]json.RawMessage `json:"states"`
		Versions map[string]int             `json:"stateVersions"`
	} `json:"state"`
}

// states reads those of the newest checkpoint.
func (h *Harness) states() *holdfast.States {
	h.t.Helper()
	ctx, key := h.t.Context(), holdfast.ThreadKey{Tenant: h.on.who.Tenant, Thread: h.on.name}
	list, err := h.cfg.Store.Values(ctx, key, holdfast.KindCheckpoint, "", 1)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		h.t.Fatalf("agenttest: the checkpoints cannot be read: %v", err)
	}
	if len(list) == 0 {
		return nil
	}
	var newest stored
	h.read("the newest checkpoint", list[0].Data, &newest)
	// The versions of the schema stand for all that are not told apart.
	var schema holdfast.SchemaInfo
	if name := newest.State.Schema; name != "" {
		data, err := h.cfg.Store.Value(ctx, key, holdfast.KindBlob, "schema/"+name)
		if err != nil {
			h.t.Fatalf("agenttest: the schema of the newest checkpoint cannot be read: %v", err)
		}
		h.read("the schema of the newest checkpoint", data, &schema)
	}
	versions := map[string]int{}
	for name := range newest.State.States {
		versions[name] = schema.StateVersions[name]
		if own := newest.State.Versions[name]; own != 0 {
			versions[name] = own
		}
	}
	states := &holdfast.States{}
	h.read("the states", h.json(map[string]any{"states": newest.State.States, "stateVersions": versions}), states)
	return states
}
