package agui

import "encoding/json"

// StateVersion returns the metadata of an event after which a client has that version of the state: its name,
// which the client may send back. No state has none.
func StateVersion(id string) json.RawMessage {
	if id == "" {
		return nil
	}
	name, err := json.Marshal(id)
	if err != nil {
		return nil // a text can be written
	}
	return append(append([]byte(`{"holdfast":{"stateVersion":`), name...), "}}"...)
}

// AppendStateSnapshot appends a STATE_SNAPSHOT of the version of that name.
func AppendStateSnapshot(dst []byte, version string, state []byte) []byte {
	return Append(dst, StateSnapshot{Base: Base{Metadata: StateVersion(version)}, Snapshot: state})
}

// AppendStateDelta appends a STATE_DELTA that makes the version of that name.
func AppendStateDelta(dst []byte, version string, patch []byte) []byte {
	return Append(dst, StateDelta{Base: Base{Metadata: StateVersion(version)}, Delta: patch})
}
