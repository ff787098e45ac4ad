package agui

import (
	"bytes"
	"encoding/json"
	"strings"
)

// marksMember is the member of a metadata object that belongs to the server: what it says
// about a message, a call or an event. Clients cannot set it.
const marksMember = "holdfast"

// dropMarks removes the server's member from all metadata of an input, so that nothing a
// client says can be taken for the server's own word. Parts lose theirs when they are
// decoded.
func (in *RunAgentInput) dropMarks() {
	for i := range in.Messages {
		in.Messages[i].DropMarks()
	}
	for i := range in.Tools {
		in.Tools[i].Metadata = withoutMarks(in.Tools[i].Metadata)
	}
	for i := range in.Resume {
		in.Resume[i].Metadata = withoutMarks(in.Resume[i].Metadata)
	}
}

// DropMarks removes the server's member from the metadata of the message and of its calls.
func (m *Message) DropMarks() {
	m.Metadata = withoutMarks(m.Metadata)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Metadata = withoutMarks(m.ToolCalls[i].Metadata)
	}
}

// withoutMarks returns metadata without the server's member, and nil if nothing else is in
// it. Names are compared as encoding/json compares them, which is how they are read.
func withoutMarks(metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 {
		return metadata
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(metadata, &members) != nil {
		return metadata // not an object: refused elsewhere, or left out when it is written
	}
	kept := len(members)
	for name := range members {
		if strings.EqualFold(name, marksMember) {
			delete(members, name)
		}
	}
	switch len(members) {
	case kept:
		return metadata
	case 0:
		return nil
	}
	return mustJSON(members)
}

// importedMark is what the server says about a message that a client brought.
var importedMark = json.RawMessage(`{"imported":true}`)

// MarkImported notes in the message's metadata that a client brought it: the server has
// not produced it.
func (m *Message) MarkImported() { m.Mark(importedMark) }

// editedMark is what the server says about a message with calls that a person has edited.
var editedMark = json.RawMessage(`{"edited":true}`)

// MarkEdited notes in the message's metadata that a person has changed the arguments of its
// calls.
func (m *Message) MarkEdited() { m.Mark(editedMark) }

// Mark puts what the server says about a message into its metadata, an object in JSON.
func (m *Message) Mark(said json.RawMessage) {
	members := map[string]json.RawMessage{}
	if len(m.Metadata) > 0 && json.Unmarshal(m.Metadata, &members) != nil {
		members = map[string]json.RawMessage{}
	}
	if members == nil { // the metadata was null
		members = map[string]json.RawMessage{}
	}
	members[marksMember] = said
	m.Metadata = mustJSON(members)
}

// Imported reports whether the message is marked as one that a client brought.
func (m *Message) Imported() bool {
	switch {
	case string(m.Metadata) == `{"holdfast":{"imported":true}}`: // as most have it
		return true
	case !bytes.Contains(m.Metadata, []byte(`"imported"`)):
		return false
	}
	var metadata struct {
		Holdfast struct {
			Imported bool `json:"imported"`
		} `json:"holdfast"`
	}
	return json.Unmarshal(m.Metadata, &metadata) == nil && metadata.Holdfast.Imported
}

// mustJSON encodes a map of JSON texts that a decoder has returned, which cannot fail.
func mustJSON(members map[string]json.RawMessage) json.RawMessage {
	b, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return b
}
