package agui

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Assembler makes messages out of the events of an answer that is still being
// written, as the official client does: so that a reader who comes in the middle
// can be shown what the others see. The zero value is ready.
type Assembler struct {
	order []string
	byID  map[string]*making
	calls map[string]*ToolCall
}

type making struct {
	message Message
	text    []byte
	spoke   bool
	calls   []*ToolCall
}

func (a *Assembler) get(id, role string) *making {
	if m := a.byID[id]; m != nil {
		return m
	}
	if a.byID == nil {
		a.byID, a.calls = map[string]*making{}, map[string]*ToolCall{}
	}
	m := &making{message: Message{ID: id, Role: role}}
	a.byID[id] = m
	a.order = append(a.order, id)
	return m
}

// Apply takes the next event; those that make no message are ignored.
func (a *Assembler) Apply(ev Event) {
	switch e := ev.(type) {
	case TextMessageStart:
		role := e.Role
		if role == "" {
			role = string(holdfast.RoleAssistant)
		}
		m := a.get(e.MessageID, role)
		m.message.Name, m.spoke = e.Name, true
	case TextMessageContent:
		m := a.get(e.MessageID, string(holdfast.RoleAssistant))
		m.text = append(m.text, e.Delta...)
	case ReasoningMessageStart:
		a.get(e.MessageID, string(holdfast.RoleReasoning)).spoke = true
	case ReasoningMessageContent:
		m := a.get(e.MessageID, string(holdfast.RoleReasoning))
		m.text = append(m.text, e.Delta...)
	case ReasoningEncryptedValue:
		if m := a.byID[e.EntityID]; m != nil && e.Subtype == "message" {
			m.message.EncryptedValue = e.EncryptedValue
		} else if c := a.calls[e.EntityID]; c != nil {
			c.EncryptedValue = e.EncryptedValue
		}
	case ToolCallStart:
		a.call(e)
	case ToolCallArgs:
		if c := a.calls[e.ToolCallID]; c != nil {
			c.Function.Arguments += e.Delta
		}
	case ToolCallResult:
		m := a.get(e.MessageID, string(holdfast.RoleTool))
		m.message.ToolCallID, m.message.Content = e.ToolCallID, e.Content
	}
}

func (a *Assembler) call(e ToolCallStart) {
	parent := e.ParentMessageID
	if parent == "" {
		parent = e.ToolCallID
	}
	m := a.get(parent, string(holdfast.RoleAssistant))
	if a.calls[e.ToolCallID] != nil {
		return
	}
	c := &ToolCall{ID: e.ToolCallID, Type: "function", Function: Function{Name: e.ToolCallName}}
	a.calls[e.ToolCallID] = c
	m.calls = append(m.calls, c)
}

// Messages returns what has been assembled so far, in order of appearance.
func (a *Assembler) Messages() []Message {
	out := make([]Message, 0, len(a.order))
	for _, id := range a.order {
		m := a.byID[id]
		msg := m.message
		if m.spoke || len(m.text) > 0 {
			msg.Content = json.RawMessage(appendString(nil, string(m.text)))
		}
		for _, c := range m.calls {
			msg.ToolCalls = append(msg.ToolCalls, *c)
		}
		out = append(out, msg)
	}
	return out
}
