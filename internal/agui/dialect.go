package agui

// The dialects of AG-UI: which form a client understands, and how events are
// rewritten for clients from before version 1.0.

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// Dialect is the form of AG-UI that a client understands.
type Dialect uint8

// The dialects. DialectLegacy is for clients from before 1.0, which fail a whole run
// on anything that they do not know; CopilotKit still pins such a client.
const (
	DialectV1 Dialect = iota
	DialectLegacy
)

// DialectOf returns the dialect for an input's protocolVersion; without one the client
// is older than versions.
func DialectOf(protocolVersion string) Dialect {
	if protocolVersion == "" {
		return DialectLegacy
	}
	return DialectV1
}

// Event turns an event in this package's own encoding into the dialect; false means
// that the dialect has no such event, so it is left out.
func (d Dialect) Event(data []byte) ([]byte, bool) {
	if d == DialectV1 {
		return data, true
	}
	kept, attributed := unattributed(data)
	switch t := TypeOf(data); t {
	case TypeSubagentStarted, TypeSubagentFinished, TypeSubagentError:
		return nil, false
	case TypeStepStarted, TypeStepFinished:
		// Step names are per subagent; without the subagent, one could be opened twice.
		return data, !attributed
	case TypeRunStarted, TypeRunFinished, TypeToolCallResult, TypeMessagesSnapshot:
		ev, err := DecodeEvent(data)
		if err != nil {
			return data, true
		}
		return Append(nil, legacy(ev)), true
	}
	return kept, true
}

// message turns an encoded message into the dialect.
func (d Dialect) message(data []byte) []byte {
	var m [1]Message
	if d == DialectV1 || json.Unmarshal(data, &m[0]) != nil {
		return data
	}
	legacyMessages(m[:])
	return m[0].AppendJSON(nil)
}

// unattributed removes the event's subagent, if it has one: the events that announce
// subagents are left out, and all that clients read about a message must agree.
func unattributed(data []byte) (kept []byte, attributed bool) {
	if !bytes.Contains(data, []byte(`"subagentRunId":`)) {
		return data, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members["subagentRunId"] == nil {
		return data, false
	}
	o := event(nil, TypeOf(data))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "type" && name != "subagentRunId" {
			o.always(name, members[name])
		}
	}
	return o.end(), true
}

// legacy removes what clients before 1.0 fail on.
func legacy(ev Event) Event {
	switch e := ev.(type) {
	case RunStarted:
		e.Input = legacyInput(e.Input)
		return e
	case RunFinished:
		// The outcomes success and cancelled are newer than these clients, which expect
		// a run to end without an outcome.
		if e.Outcome != nil && e.Outcome.Type != OutcomeInterrupt {
			e.Outcome = nil
		}
		if e.Outcome != nil {
			for i := range e.Outcome.Interrupts {
				e.Outcome.Interrupts[i].SubagentRunID = ""
			}
		}
		return e
	case ToolCallResult:
		e.Content, e.SubagentRunID = plainContent(e.Content), ""
		return e
	case MessagesSnapshot:
		legacyMessages(e.Messages)
		return e
	}
	return ev
}

func legacyMessages(messages []Message) {
	for i := range messages {
		m := &messages[i]
		if m.Role == string(holdfast.RoleTool) {
			m.Content = plainContent(m.Content)
		} else {
			m.Content = withoutFiles(m.Content)
		}
		m.SubagentRunID = ""
	}
}

// legacyInput returns an echoed input with its lists of tools and context, which are
// not optional in that dialect.
func legacyInput(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return nil
	}
	in, err := DecodeInput(input)
	if err != nil {
		return nil
	}
	legacyMessages(in.Messages)
	return in.AppendJSON(nil)
}

// plainContent returns a result as text, since that dialect does not allow parts.
func plainContent(content json.RawMessage) json.RawMessage {
	if len(content) == 0 || content[0] == '"' {
		return content
	}
	list, err := parts(content)
	if err != nil {
		return appendString(nil, string(content))
	}
	m := holdfast.Message{Parts: list}
	return appendString(nil, m.PlainText())
}

// withoutFiles removes the parts and the part ids that older clients refuse.
func withoutFiles(content json.RawMessage) json.RawMessage {
	if len(content) == 0 || content[0] != '[' {
		return content
	}
	list, err := parts(content)
	if err != nil {
		return content
	}
	kept := list[:0]
	for _, p := range list {
		if p.Source != nil && p.Source.Type == holdfast.SourceFile {
			continue
		}
		p.ID = ""
		kept = append(kept, p)
	}
	return appendParts(nil, kept)
}
