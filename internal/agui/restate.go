package agui

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Restated returns the events after which a client shows the messages following those that it
// has; false if there are none that say all of what a message holds, as of one with pictures,
// metadata or an error. Only a snapshot shows these.
func Restated(messages []Message) (events []Event, whole bool) {
	for i := range messages {
		said, whole := restate(&messages[i])
		if !whole {
			return nil, false
		}
		events = append(events, said...)
	}
	return events, true
}

func restate(m *Message) ([]Event, bool) {
	if len(m.Metadata) > 0 || m.Error != "" || m.SubagentRunID != "" {
		return nil, false
	}
	switch holdfast.Role(m.Role) {
	case holdfast.RoleTool:
		return []Event{
			ToolCallResult{MessageID: m.ID, ToolCallID: m.ToolCallID, Content: m.Content, Role: m.Role},
		}, m.EncryptedValue == "" && len(m.Content) > 0
	case holdfast.RoleActivity:
		return []Event{ActivitySnapshot{MessageID: m.ID, ActivityType: m.ActivityType, Content: m.Content}}, true
	case holdfast.RoleReasoning:
		return restatedReasoning(m)
	case holdfast.RoleUser, holdfast.RoleAssistant:
		return restatedText(m)
	}
	return nil, false
}

// restatedText is for what a person or a model has said, and the calls of the model.
func restatedText(m *Message) (events []Event, whole bool) {
	var text string
	if m.EncryptedValue != "" || len(m.Content) > 0 && json.Unmarshal(m.Content, &text) != nil {
		return nil, false
	}
	if len(m.Content) > 0 || len(m.ToolCalls) == 0 {
		events = append(events, TextMessageStart{MessageID: m.ID, Role: m.Role, Name: m.Name})
		if text != "" {
			events = append(events, TextMessageContent{MessageID: m.ID, Delta: text})
		}
		events = append(events, TextMessageEnd{MessageID: m.ID})
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if len(c.Metadata) > 0 || c.EncryptedValue != "" {
			return nil, false
		}
		events = append(events, ToolCallStart{ToolCallID: c.ID, ToolCallName: c.Function.Name, ParentMessageID: m.ID})
		if c.Function.Arguments != "" {
			events = append(events, ToolCallArgs{ToolCallID: c.ID, Delta: c.Function.Arguments})
		}
		events = append(events, ToolCallEnd{ToolCallID: c.ID})
	}
	return events, true
}

// restatedReasoning is for what a model has thought.
func restatedReasoning(m *Message) (events []Event, whole bool) {
	var text string
	if json.Unmarshal(m.Content, &text) != nil {
		return nil, false
	}
	events = append(events, ReasoningStart{MessageID: m.ID}, ReasoningMessageStart{MessageID: m.ID})
	if text != "" {
		events = append(events, ReasoningMessageContent{MessageID: m.ID, Delta: text})
	}
	events = append(events, ReasoningMessageEnd{MessageID: m.ID})
	if m.EncryptedValue != "" {
		events = append(events, ReasoningEncryptedValue{Subtype: "message", EntityID: m.ID,
			EncryptedValue: m.EncryptedValue})
	}
	return append(events, ReasoningEnd{MessageID: m.ID}), true
}
