package agui

// The assembler: turns the events of an unfinished answer into messages, so that a
// client that joins late can be shown them.

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// Assembler turns the events of an unfinished answer into messages, as the official
// client does, so that a reader who joins in the middle can be shown what the others
// see. The zero value is ready to use.
type Assembler struct {
	order []string
	byID  map[string]*making
	calls map[string]*calling
	// chunk is the item that a chunk without an id continues.
	chunk string
}

type making struct {
	message Message
	text    []byte
	spoke   bool
	calls   []*calling
}

// calling is a call whose arguments are still being written.
type calling struct {
	owner string
	call  ToolCall
	args  []byte
}

// get returns the message; if there is none, it makes one that is attributed to the subagent.
// Any event that opens the message again must agree with that.
func (a *Assembler) get(id, role, agent string) (m *making, made bool) {
	if m := a.byID[id]; m != nil {
		return m, false
	}
	if a.byID == nil {
		a.byID, a.calls = map[string]*making{}, map[string]*calling{}
	}
	m = &making{message: Message{ID: id, Role: role, SubagentRunID: agent}}
	a.byID[id] = m
	a.order = append(a.order, id)
	return m, true
}

// Apply takes the next event; it ignores events that do not contribute to messages.
func (a *Assembler) Apply(ev Event) {
	switch e := ev.(type) {
	case TextMessageStart:
		role := e.Role
		if role == "" {
			role = string(holdfast.RoleAssistant)
		}
		// A message that exists because of a call has no content until it gets some.
		if m, made := a.get(e.MessageID, role, e.SubagentRunID); made {
			m.message.Name, m.spoke = e.Name, true
		}
	case TextMessageContent:
		a.say(e.MessageID, e.Delta)
	case ReasoningMessageStart:
		if m, made := a.get(e.MessageID, string(holdfast.RoleReasoning), e.SubagentRunID); made {
			m.spoke = true
		}
	case ReasoningMessageContent:
		a.say(e.MessageID, e.Delta)
	case ReasoningEncryptedValue:
		a.secret(e)
	case ToolCallStart:
		a.call(e)
	case ToolCallArgs:
		if c := a.calls[e.ToolCallID]; c != nil {
			c.args = append(c.args, e.Delta...)
		}
	case ToolCallResult:
		a.result(e)
	case TextMessageChunk, ToolCallChunk, ReasoningMessageChunk:
		a.chunked(ev)
	}
}

func (a *Assembler) say(id, delta string) {
	if m := a.byID[id]; m != nil {
		m.text, m.spoke = append(m.text, delta...), true
	}
}

func (a *Assembler) secret(e ReasoningEncryptedValue) {
	if e.Subtype == "tool-call" {
		if c := a.calls[e.EntityID]; c != nil {
			c.call.EncryptedValue = e.EncryptedValue
		}
	} else if m := a.byID[e.EntityID]; m != nil {
		m.message.EncryptedValue = e.EncryptedValue
	}
}

// chunked treats a chunk as the START and the content that it stands for.
func (a *Assembler) chunked(ev Event) {
	k := kindOf(ev)
	if id := k.text(ev, k.id); id != "" {
		a.chunk = id
		a.Apply(k.lane.of(opens).made(func(name string) string { return k.text(ev, name) }))
	}
	delta := k.text(ev, "delta")
	if k.lane == laneCall {
		a.Apply(ToolCallArgs{ToolCallID: a.chunk, Delta: delta})
	} else if delta != "" {
		a.say(a.chunk, delta)
	}
}

// result puts a tool's message after the message that made the call and the results
// that are already there.
func (a *Assembler) result(e ToolCallResult) {
	m, made := a.get(e.MessageID, string(holdfast.RoleTool), e.SubagentRunID)
	m.message.ToolCallID, m.message.Content = e.ToolCallID, e.Content
	c := a.calls[e.ToolCallID]
	if c == nil || !made {
		return
	}
	last := len(a.order) - 1
	at := slices.Index(a.order, c.owner) + 1
	for at < last && a.byID[a.order[at]].message.Role == string(holdfast.RoleTool) {
		at++
	}
	a.order = slices.Insert(a.order[:last], at, e.MessageID)
}

func (a *Assembler) call(e ToolCallStart) {
	parent := e.ParentMessageID
	if parent == "" {
		parent = e.ToolCallID
	}
	if a.calls[e.ToolCallID] != nil {
		return
	}
	m, _ := a.get(parent, string(holdfast.RoleAssistant), e.SubagentRunID)
	c := &calling{
		owner: parent,
		call:  ToolCall{ID: e.ToolCallID, Type: "function", Function: Function{Name: e.ToolCallName}},
	}
	a.calls[e.ToolCallID] = c
	m.calls = append(m.calls, c)
}

// Messages returns what has been assembled so far, in order of appearance.
func (a *Assembler) Messages() []Message {
	out := make([]Message, 0, len(a.order))
	for _, id := range a.order {
		m := a.byID[id]
		msg := m.message
		if m.spoke {
			msg.Content = json.RawMessage(appendString(nil, string(m.text)))
		}
		for _, c := range m.calls {
			call := c.call
			call.Function.Arguments = string(c.args)
			msg.ToolCalls = append(msg.ToolCalls, call)
		}
		out = append(out, msg)
	}
	return out
}
