package agui

// The sequence machine, part two: what a stream has said about each id, since
// whatever comes later must agree with it, and the compact chunk form.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// The chunk lanes.
const (
	laneText = iota
	laneTool
	laneReasoning
)

// chunked accepts the compact form: an item's first chunk names it, and later chunks
// may repeat that name but not change it. Any other event ends the item.
func (q *Sequencer) chunked(ev Event) error {
	t := ev.EventType()
	lane, triad, start := unchunk(ev)
	id, agent, as := identity(start)
	if id == "" {
		if q.chunks[lane] == "" {
			return refuse(t, "the first chunk of an item names it")
		}
		id = q.chunks[lane]
	}
	if q.find(triad, id) >= 0 {
		return refuse(t, "%q is open in START and END form", id)
	}
	if id == q.chunks[lane] {
		return q.continues(ev)
	}
	switch {
	case lane == laneTool && as == "":
		return refuse(t, "the first chunk of a call has the tool's name")
	case lane == laneText && !isTextRole(as):
		return refuse(t, "a text message has no role %q", as)
	}
	if err := q.remember(triad, start, id, agent, as); err != nil {
		return err
	}
	q.endChunks()
	q.chunks[lane], q.chunk = id, item{
		kind:  t,
		id:    id,
		agent: agent,
		role:  as,
		start: withoutDelta(ev),
	}
	return nil
}

// continues accepts the next chunk of the open chunk item. Members that it repeats must agree
// with the first chunk, and it must be of the same subagent.
func (q *Sequencer) continues(ev Event) error {
	_, _, start := unchunk(ev)
	_, agent, as := identity(start)
	_, _, first := unchunk(q.chunk.start)
	if agent != q.chunk.agent || (as != "" && as != q.chunk.role) {
		return refuse(ev.EventType(), "%q was begun with another role, name or subagent", q.chunk.id)
	}
	if name, parent := particulars(start); name != "" || parent != "" {
		oldName, oldParent := particulars(first)
		if (name != "" && name != oldName) || (parent != "" && parent != oldParent) {
			return refuse(ev.EventType(), "%q was begun with another name or parent", q.chunk.id)
		}
	}
	return nil
}

// unchunk returns a chunk's lane and the START that its first chunk stands for.
func unchunk(ev Event) (lane int, triad Type, start Event) {
	switch e := ev.(type) {
	case ToolCallChunk:
		return laneTool, TypeToolCallStart, ToolCallStart{
			ToolCallID:      e.ToolCallID,
			ToolCallName:    e.ToolCallName,
			ParentMessageID: e.ParentMessageID,
			SubagentRunID:   e.SubagentRunID,
		}
	case ReasoningMessageChunk:
		return laneReasoning, TypeReasoningMessageStart, ReasoningMessageStart{
			MessageID:     e.MessageID,
			SubagentRunID: e.SubagentRunID,
		}
	case TextMessageChunk:
		return laneText, TypeTextMessageStart, TextMessageStart{
			MessageID:     e.MessageID,
			Role:          e.Role,
			Name:          e.Name,
			SubagentRunID: e.SubagentRunID,
		}
	}
	return laneText, "", nil
}

// withoutDelta returns a chunk without content that opens the same item.
func withoutDelta(ev Event) Event {
	switch e := ev.(type) {
	case ToolCallChunk:
		e.Base, e.Delta = Base{}, ""
		return e
	case ReasoningMessageChunk:
		e.Base, e.Delta = Base{}, ""
		return e
	case TextMessageChunk:
		e.Base, e.Delta = Base{}, ""
		return e
	}
	return ev
}

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

func isTextRole(role string) bool {
	switch role {
	case "", "assistant", "user", "system", "developer":
		return true
	}
	return false
}

// particulars returns what else a START says that must not change.
func particulars(start Event) (name, parent string) {
	switch e := start.(type) {
	case TextMessageStart:
		return e.Name, ""
	case ToolCallStart:
		return "", e.ParentMessageID
	}
	return "", ""
}

// remember checks a START against what is known about its id, and records it.
func (q *Sequencer) remember(t Type, start Event, id, agent, role string) error {
	if t == TypeStepStarted {
		return nil
	}
	name, parent := particulars(start)
	if t == TypeTextMessageStart && role == "" {
		role = "assistant"
	}
	k := key{id: id}
	switch t {
	case TypeToolCallStart:
		k.space = spaceCall
	case TypeReasoningStart:
		k.space = spaceSpan
	}
	now := memory{
		kind:   t,
		agent:  agent,
		role:   role,
		name:   name,
		parent: parent,
	}
	old, seen := q.known[k]
	switch {
	case seen && old.agent != agent, q.twin(t, id, agent):
		return refuse(t, "%q belongs to another subagent", id)
	case seen && old.kind != "" && (old.kind != t || old.role != role || old.parent != parent ||
		(old.name != name && !old.implied)):
		return refuse(t, "%q was something else before", id)
	}
	if t == TypeToolCallStart && old.kind == "" {
		if err := q.adopt(id, parent, agent); err != nil {
			return err
		}
	}
	q.note(k, now)
	return nil
}

// twin reports whether the span or the reasoning message with the same id, which must
// have the same owner, has another one.
func (q *Sequencer) twin(t Type, id, agent string) bool {
	switch t {
	case TypeReasoningStart:
		m, seen := q.known[key{id: id}]
		return seen && m.kind == TypeReasoningMessageStart && m.agent != agent
	case TypeReasoningMessageStart:
		m, seen := q.known[key{space: spaceSpan, id: id}]
		return seen && m.agent != agent
	}
	return false
}

// adopt finds the message that a new call belongs to: an assistant message of the same
// subagent. Clients make one if there is none.
func (q *Sequencer) adopt(call, parent, agent string) error {
	k := key{id: parent}
	if parent == "" {
		k.id = call
	}
	m, seen := q.known[k]
	if seen && m.kind == "" && m.agent == agent {
		seen = false
	}
	if seen && (parent == "" || m.kind != TypeTextMessageStart || m.role != "assistant" || m.agent != agent) {
		return refuse(TypeToolCallStart, "message %q cannot hold the call", k.id)
	}
	if !seen {
		q.note(k, memory{kind: TypeTextMessageStart, agent: agent, role: "assistant", implied: true})
	}
	return nil
}

func (q *Sequencer) note(k key, m memory) {
	if q.known == nil {
		q.known = map[key]memory{}
	}
	q.known[k] = m
}

// result accepts a tool's result, which is a message of its own.
func (q *Sequencer) result(e ToolCallResult) error {
	if err := needIDs(TypeToolCallResult, e.MessageID, e.ToolCallID); err != nil {
		return err
	}
	if text := oneLine(e.Content); text[0] != '"' && text[0] != '[' {
		return refuse(TypeToolCallResult, "its content is neither text nor a list of parts")
	}
	if m := q.known[key{id: e.MessageID}]; m.kind != "" {
		return refuse(TypeToolCallResult, "message %q is there already", e.MessageID)
	}
	q.note(key{id: e.MessageID}, memory{kind: TypeToolCallResult, agent: e.SubagentRunID})
	return nil
}

// activity accepts an activity unless its id is that of a message.
func (q *Sequencer) activity(e ActivitySnapshot) error {
	if err := needIDs(TypeActivitySnapshot, e.MessageID, e.ActivityType); err != nil {
		return err
	}
	if oneLine(e.Content)[0] != '{' {
		return refuse(TypeActivitySnapshot, "its content is not an object")
	}
	m, seen := q.known[key{id: e.MessageID}]
	if seen && m.kind != "" && m.kind != TypeActivitySnapshot {
		return refuse(TypeActivitySnapshot, "%q is a message", e.MessageID)
	}
	if !seen || e.Replace == nil || *e.Replace {
		q.note(key{id: e.MessageID}, memory{kind: TypeActivitySnapshot, agent: e.SubagentRunID})
	}
	return nil
}

// restate accepts what a snapshot says about messages and their calls. A snapshot may
// change their owner, but not what they are.
func (q *Sequencer) restate(messages []Message) error {
	for i := range messages {
		if old := q.known[key{id: messages[i].ID}]; old.kind != "" && old.kind != restated(&messages[i]).kind {
			return refuse(TypeMessagesSnapshot, "%q was something else before", messages[i].ID)
		}
	}
	q.forget()
	for i := range messages {
		m := &messages[i]
		q.note(key{id: m.ID}, restated(m))
		for _, c := range m.ToolCalls {
			q.note(
				key{space: spaceCall, id: c.ID},
				memory{kind: TypeToolCallStart, agent: m.SubagentRunID, role: c.Function.Name, parent: m.ID},
			)
		}
	}
	return nil
}

// forget drops what is not in a snapshot, as clients do, so that the ids of an answer
// that was taken back can be used again. Like clients, it keeps the owners, and
// reasoning and activities.
func (q *Sequencer) forget() {
	for k, m := range q.known {
		if m.kind != TypeReasoningMessageStart && m.kind != TypeActivitySnapshot {
			q.known[k] = memory{agent: m.agent}
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

func (q *Sequencer) subagentStarted(ev Event) error {
	e, ok := ev.(SubagentStarted)
	switch {
	case !ok || e.SubagentRunID == "" || e.Name == "":
		return refuse(TypeSubagentStarted, "it has no id or no name")
	case q.subagents[e.SubagentRunID]:
		return refuse(TypeSubagentStarted, "%q was announced before", e.SubagentRunID)
	case e.ParentSubagentRunID != "" && q.find(TypeSubagentStarted, e.ParentSubagentRunID) < 0:
		return refuse(TypeSubagentStarted, "its parent is not active")
	}
	if q.subagents == nil {
		q.subagents = map[string]bool{}
	}
	q.subagents[e.SubagentRunID] = true
	q.open = append(q.open, item{kind: TypeSubagentStarted, id: e.SubagentRunID, start: ev})
	return nil
}

// subagentEnded closes what the subagent left open, before the subagent ends.
func (q *Sequencer) subagentEnded(ev Event) ([]Event, error) {
	var id string
	switch e := ev.(type) {
	case SubagentFinished:
		id = e.SubagentRunID
	case SubagentError:
		id = e.SubagentRunID
	}
	at := q.find(TypeSubagentStarted, id)
	if at < 0 {
		return nil, refuse(ev.EventType(), "subagent %q is not active", id)
	}
	var before []Event
	for i := len(q.open) - 1; i >= 0; i-- {
		if o := q.open[i]; o.agent == id || isChild(o, id) {
			before = append(before, closer(o))
			q.open = slices.Delete(q.open, i, i+1)
		}
	}
	at = q.find(TypeSubagentStarted, id)
	q.open = slices.Delete(q.open, at, at+1)
	q.endChunks()
	return before, nil
}

func isChild(i item, parent string) bool {
	s, ok := i.start.(SubagentStarted)
	return ok && s.ParentSubagentRunID == parent
}

// checkPatch accepts a list of RFC 6902 operations.
func checkPatch(t Type, patch json.RawMessage) error {
	// Maps, because member names in a patch must match exactly.
	var ops []map[string]json.RawMessage
	if err := json.Unmarshal(patch, &ops); err != nil || ops == nil {
		return refuse(t, "it is not a list of operations")
	}
	for _, op := range ops {
		ok := isPointer(op["path"])
		switch string(op["op"]) {
		case `"add"`, `"replace"`, `"test"`:
			ok = ok && len(op["value"]) > 0
		case `"move"`, `"copy"`:
			ok = ok && isPointer(op["from"])
		case `"remove"`:
		default:
			return refuse(t, "an operation is unknown")
		}
		if !ok {
			return refuse(t, "an operation lacks its value or a JSON pointer")
		}
	}
	return nil
}

// isPointer reports whether raw is a JSON string with an RFC 6901 pointer.
func isPointer(raw json.RawMessage) bool {
	var p *string
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return false
	}
	escapes := strings.Count(*p, "~0") + strings.Count(*p, "~1")
	return (*p == "" || (*p)[0] == '/') && strings.Count(*p, "~") == escapes
}
