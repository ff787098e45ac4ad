package thread

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
)

// StatePatch is a change of the shared state that a request asks for.
type StatePatch struct {
	// ID is what the request is recognized by while a run is under way; empty otherwise.
	ID string `json:"id,omitempty"`
	// Patch is a JSON Patch, or a merge patch if Merge is set.
	Patch json.RawMessage `json:"patch"`
	Merge bool            `json:"merge,omitempty"`
	// Version is the one that the state must have, NoState for none; empty if any will do.
	Version string `json:"version,omitempty"`
}

// Apply returns a state after the change. A thread without one has an empty object.
func (p *StatePatch) Apply(s *Shared) (json.RawMessage, error) {
	if p.Version != "" && p.Version != s.Name() {
		return nil, holdfast.Errorf(codes.CheckpointConflict,
			"Concurrent modification detected. Expected version of the state: %s, actual version: %s.", p.Version,
			s.Name()).
			WithHint("Read the state again; nothing was changed.").With("expected", p.Version).With("actual", s.Name())
	}
	state := s.State
	if text := bytes.TrimSpace(state); len(text) == 0 || string(text) == "null" {
		state = json.RawMessage("{}")
	}
	apply := jsonpatch.Change
	if p.Merge {
		apply = jsonpatch.Merge
	}
	next, err := apply(state, p.Patch)
	if err != nil {
		return nil, holdfast.Errorf(codes.StateConflict, "The patch cannot be applied to the shared state: %v.", err).
			WithHint("Nothing was changed. GET /threads/{thread}/state shows the state as it is.").Wrap(err)
	}
	return next, nil
}

// PatchedState is what a log says of a [StatePatch] that was asked for while a run is under way.
type PatchedState struct {
	Request string `json:"request"` // its ID
	// Version is the version of the state after it, NoState for none.
	Version string `json:"stateVersion,omitempty"`
	// Code, Message and Hint say why it changes nothing.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Refuse notes why the change was refused.
func (p *PatchedState) Refuse(err error) {
	public := holdfast.AsError(err)
	p.Code, p.Message, p.Hint = public.Code, public.Message, public.Hint
}

// Err returns why the change was refused; nil if it was not.
func (p *PatchedState) Err() error {
	if p.Code == "" {
		return nil
	}
	return holdfast.Errorf(p.Code, "%s", p.Message).WithHint("%s", p.Hint)
}

// StatePatched is the name of the CUSTOM event with a [PatchedState].
const StatePatched = "holdfast.state_patched"
