package agui

import "encoding/json"

// The server marks messages that an agent elsewhere has made.

// Remote is the member remote of the server's mark.
type Remote struct {
	// Message is what that agent calls the message; empty if it has not said.
	Message string `json:"message,omitempty"`
}

// RemoteMark returns the metadata of a message that an agent elsewhere has made.
func RemoteMark(message string) json.RawMessage {
	b, err := json.Marshal(map[string]map[string]Remote{marksMember: {"remote": {message}}})
	if err != nil {
		return nil
	}
	return b
}

// RemoteOf returns what metadata says of an agent elsewhere; nil if it has not made the message.
func RemoteOf(metadata json.RawMessage) *Remote {
	var said struct {
		Holdfast struct {
			Remote *Remote `json:"remote"`
		} `json:"holdfast"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &said) != nil {
		return nil
	}
	return said.Holdfast.Remote
}

// The results of an agent's own calls that the agent has not told.
const (
	TextNotSaid   = "The agent that carried this call out did not say what came of it."
	TextAsksFirst = "No result yet: the agent asks a person first."
)
