package agui

// The sequence machine, part two: what a stream has said about each id, since later
// events must agree with it.

import (
	"cmp"

	"github.com/holdfast-agents/holdfast"
)

// key names an item of a stream. Calls and spans of reasoning have id spaces of their
// own; all kinds of messages share one.
type key struct {
	space byte // 0, spaceCall or spaceSpan
	id    string
}

const (
	spaceCall = 'c'
	spaceSpan = 's'
)

// memory is what a stream has said about an id. Later events, even after the item was closed,
// must agree: clients append to what they have, and fail a run that attributes it to another
// subagent (AG-UI spec, ownership).
type memory struct {
	kind               Type
	agent              string
	role, name, parent string
	// implied: clients made the message themselves, for a call that named it.
	implied bool
}

// about is what an event says about the item that it opens, continues or closes.
type about struct {
	id, agent string
	// role, name and parent must not change; role is the name of a call's tool.
	role, name, parent string
}

func (k *kind) about(ev Event) about {
	a := about{
		id:     k.text(ev, k.id),
		agent:  k.text(ev, "subagentRunId"),
		role:   k.text(ev, "role"),
		name:   k.text(ev, "name"),
		parent: k.text(ev, "parentMessageId"),
	}
	if k.lane == laneCall {
		a.role = k.text(ev, "toolCallName")
	}
	return a
}

// memories is what a stream has said about all ids, even of items that were closed since.
type memories map[key]memory

// remember checks what an event of type t says that opens an item, and records it.
func (known memories) remember(t Type, a about) error {
	k := key{id: a.id}
	switch t {
	case TypeStepStarted:
		return nil
	case TypeTextMessageStart:
		a.role = cmp.Or(a.role, string(holdfast.RoleAssistant))
	case TypeToolCallStart:
		k.space = spaceCall
	case TypeReasoningStart:
		k.space = spaceSpan
	}
	old, seen := known[k]
	switch {
	case seen && old.agent != a.agent, known.twin(t, a.id, a.agent):
		return refuse(t, "%q belongs to another subagent", a.id)
	case seen && old.kind != "" && (old.kind != t || old.role != a.role || old.parent != a.parent ||
		(old.name != a.name && !old.implied)):
		return refuse(t, "%q was something else before", a.id)
	}
	if t == TypeToolCallStart && old.kind == "" {
		if err := known.adopt(a.id, a.parent, a.agent); err != nil {
			return err
		}
	}
	known[k] = memory{
		kind:   t,
		agent:  a.agent,
		role:   a.role,
		name:   a.name,
		parent: a.parent,
	}
	return nil
}

// twin reports whether the span or the reasoning message with the same id, which must
// have the same owner, has another one.
func (known memories) twin(t Type, id, agent string) bool {
	switch t {
	case TypeReasoningStart:
		m, seen := known[key{id: id}]
		return seen && m.kind == TypeReasoningMessageStart && m.agent != agent
	case TypeReasoningMessageStart:
		m, seen := known[key{space: spaceSpan, id: id}]
		return seen && m.agent != agent
	}
	return false
}

// adopt finds the message that a new call belongs to: an assistant message of the same
// subagent. Clients make one if there is none.
func (known memories) adopt(call, parent, agent string) error {
	k := key{id: parent}
	if parent == "" {
		k.id = call
	}
	m, seen := known[k]
	if seen && m.kind == "" && m.agent == agent {
		seen = false
	}
	if seen && (parent == "" || m.kind != TypeTextMessageStart || m.role != "assistant" || m.agent != agent) {
		return refuse(TypeToolCallStart, "message %q cannot hold the call", k.id)
	}
	if !seen {
		known[k] = memory{kind: TypeTextMessageStart, agent: agent, role: "assistant", implied: true}
	}
	return nil
}

// result accepts a tool's result, which is a message of its own.
func (known memories) result(e ToolCallResult) error {
	if err := needIDs(TypeToolCallResult, e.MessageID, e.ToolCallID); err != nil {
		return err
	}
	if text := oneLine(e.Content); text[0] != '"' && text[0] != '[' {
		return refuse(TypeToolCallResult, "its content is neither text nor a list of parts")
	}
	if m := known[key{id: e.MessageID}]; m.kind != "" {
		return refuse(TypeToolCallResult, "message %q is there already", e.MessageID)
	}
	known[key{id: e.MessageID}] = memory{kind: TypeToolCallResult, agent: e.SubagentRunID}
	return nil
}

// activity accepts an activity unless its id is that of a message.
func (known memories) activity(e ActivitySnapshot) error {
	if err := needIDs(TypeActivitySnapshot, e.MessageID, e.ActivityType); err != nil {
		return err
	}
	if oneLine(e.Content)[0] != '{' {
		return refuse(TypeActivitySnapshot, "its content is not an object")
	}
	m, seen := known[key{id: e.MessageID}]
	if seen && m.kind != "" && m.kind != TypeActivitySnapshot {
		return refuse(TypeActivitySnapshot, "%q is a message", e.MessageID)
	}
	if !seen || e.Replace == nil || *e.Replace {
		known[key{id: e.MessageID}] = memory{kind: TypeActivitySnapshot, agent: e.SubagentRunID}
	}
	return nil
}

// activityDelta accepts a change unless its id is that of a message, or of another subagent's
// activity.
func (known memories) activityDelta(e ActivityDelta) error {
	if err := needIDs(TypeActivityDelta, e.MessageID, e.ActivityType); err != nil {
		return err
	}
	if m, seen := known[key{id: e.MessageID}]; seen && m.kind != "" &&
		(m.kind != TypeActivitySnapshot || m.agent != e.SubagentRunID) {
		return refuse(TypeActivityDelta, "%q is not an activity of this subagent", e.MessageID)
	}
	return checkPatch(TypeActivityDelta, e.Patch)
}

// secret accepts opaque data unless it is for what another subagent said.
func (known memories) secret(e ReasoningEncryptedValue) error {
	spaces := []byte{0, spaceSpan}
	switch e.Subtype {
	case "message":
	case "tool-call":
		spaces = []byte{spaceCall}
	default:
		return refuse(TypeReasoningEncryptedValue, "its subtype is unknown")
	}
	for _, space := range spaces {
		if m, seen := known[key{space, e.EntityID}]; seen && m.agent != e.SubagentRunID {
			return refuse(TypeReasoningEncryptedValue, "%q belongs to another subagent", e.EntityID)
		}
	}
	return needIDs(TypeReasoningEncryptedValue, e.EntityID)
}

// restate accepts what a snapshot says about messages and their calls. A snapshot may
// change their owner, but not what they are.
func (known memories) restate(messages []Message) error {
	for i := range messages {
		if old := known[key{id: messages[i].ID}]; old.kind != "" && old.kind != restated(&messages[i]).kind {
			return refuse(TypeMessagesSnapshot, "%q was something else before", messages[i].ID)
		}
	}
	known.forget()
	for i := range messages {
		m := &messages[i]
		known[key{id: m.ID}] = restated(m)
		for _, c := range m.ToolCalls {
			known[key{space: spaceCall, id: c.ID}] = memory{
				kind:   TypeToolCallStart,
				agent:  m.SubagentRunID,
				role:   c.Function.Name,
				parent: m.ID,
			}
		}
	}
	return nil
}

// forget drops what is not in a snapshot, as clients do, so that the ids of an answer
// that was taken back can be used again. Like clients, it keeps the owners, and
// reasoning and activities.
func (known memories) forget() {
	for k, m := range known {
		if m.kind != TypeReasoningMessageStart && m.kind != TypeActivitySnapshot {
			known[k] = memory{agent: m.agent}
		}
	}
}

func restated(m *Message) memory {
	switch holdfast.Role(m.Role) {
	case holdfast.RoleTool:
		return memory{kind: TypeToolCallResult, agent: m.SubagentRunID}
	case holdfast.RoleReasoning:
		return memory{kind: TypeReasoningMessageStart, agent: m.SubagentRunID}
	case holdfast.RoleActivity:
		return memory{kind: TypeActivitySnapshot, agent: m.SubagentRunID}
	}
	return memory{kind: TypeTextMessageStart, agent: m.SubagentRunID, role: m.Role, name: m.Name}
}
