package agui

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Dialect is the form of AG-UI that a client understands.
type Dialect uint8

// The dialects. DialectLegacy is for clients from before 1.0, which fail a whole
// run on what they do not know; CopilotKit still pins one.
const (
	DialectV1 Dialect = iota
	DialectLegacy
)

// DialectOf returns the dialect for an input's protocolVersion: none is a client
// from before versions.
func DialectOf(protocolVersion string) Dialect {
	if protocolVersion == "" {
		return DialectLegacy
	}
	return DialectV1
}

// Event turns an event in this package's own encoding into the dialect; false
// means that it cannot be said there and is left out.
func (d Dialect) Event(data []byte) ([]byte, bool) {
	if d == DialectV1 {
		return data, true
	}
	switch t := TypeOf(data); t {
	case TypeSubagentStarted, TypeSubagentFinished, TypeSubagentError:
		return nil, false
	case TypeRunFinished, TypeToolCallResult, TypeMessagesSnapshot:
		ev, err := DecodeEvent(data)
		if err != nil {
			return data, true
		}
		return legacy(ev).AppendJSON(nil), true
	}
	return data, true
}

// legacy takes out what clients before 1.0 fail on.
func legacy(ev Event) Event {
	switch e := ev.(type) {
	case RunFinished:
		// Success and cancelled are newer than these clients; no outcome at all is
		// what they know as the end.
		if e.Outcome != nil && e.Outcome.Type != OutcomeInterrupt {
			e.Outcome = nil
		}
		return e
	case ToolCallResult:
		e.Content = plainContent(e.Content)
		return e
	case MessagesSnapshot:
		for i := range e.Messages {
			m := &e.Messages[i]
			if m.Role == string(holdfast.RoleTool) {
				m.Content = plainContent(m.Content)
			} else {
				m.Content = withoutFiles(m.Content)
			}
			m.SubagentRunID = ""
		}
		return e
	}
	return ev
}

// plainContent is a result as text: parts were not allowed there.
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

// withoutFiles drops the parts and the part ids that older clients refuse.
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
