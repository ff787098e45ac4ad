package agui

// Snapshots: events that replace what a client shows, written out whole or piece by piece,
// and the references that a log keeps in place of them and of large results.

import (
	"bytes"
	"encoding/json"
	"iter"
)

// MessagesSnapshot replaces the client's messages.
type MessagesSnapshot struct {
	Base
	Messages []Message `json:"messages"`
}

// EventType returns MESSAGES_SNAPSHOT.
func (MessagesSnapshot) EventType() Type { return TypeMessagesSnapshot }

// AppendJSON implements [Event].
func (e MessagesSnapshot) AppendJSON(dst []byte) []byte {
	encoded := make([][]byte, len(e.Messages))
	for i := range e.Messages {
		encoded[i] = e.Messages[i].AppendJSON(nil)
	}
	return AppendMessagesSnapshot(dst, e.Base, encoded)
}

// AppendMessagesSnapshot appends a MESSAGES_SNAPSHOT of messages that have already been
// encoded.
func AppendMessagesSnapshot(dst []byte, base Base, messages [][]byte) []byte {
	o := event(dst, TypeMessagesSnapshot)
	o.key("messages")
	o.b = append(o.b, '[')
	for i, m := range messages {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, m...)
	}
	o.b = append(o.b, ']')
	o.base(&base)
	return o.end()
}

// MessagesSnapshotPieces is a MESSAGES_SNAPSHOT in the dialect, of messages that have
// already been encoded, piece by piece.
func MessagesSnapshotPieces(d Dialect, messages iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		before := `{"type":"` + string(TypeMessagesSnapshot) + `","messages":[`
		for m, err := range messages {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield([]byte(before), nil) || !yield(d.message(m), nil) {
				return
			}
			before = ","
		}
		if before != "," && !yield([]byte(before), nil) {
			return
		}
		yield([]byte("]}"), nil)
	}
}

// AppendStateSnapshot appends a STATE_SNAPSHOT.
func AppendStateSnapshot(dst []byte, base Base, state []byte) []byte {
	return StateSnapshot{Base: base, Snapshot: state}.AppendJSON(dst)
}

// MessagesRef is a MESSAGES_SNAPSHOT as a log keeps it: a reference to the leaf of the
// history, expanded when it is sent, so that a log does not grow with the history.
type MessagesRef struct {
	Leaf string // id of the last message
	// Then are messages after the leaf that are not in the history yet: they wait for the
	// results of calls.
	Then []json.RawMessage
}

// EventType returns MESSAGES_SNAPSHOT.
func (MessagesRef) EventType() Type { return TypeMessagesSnapshot }

// AppendJSON implements [Event].
func (e MessagesRef) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeMessagesSnapshot)
	o.str("ref", e.Leaf)
	if len(e.Then) > 0 {
		then := []byte{'['}
		for i, m := range e.Then {
			if i > 0 {
				then = append(then, ',')
			}
			then = append(then, m...)
		}
		o.raw("then", append(then, ']'))
	}
	return o.end()
}

// StateRef is a STATE_SNAPSHOT as a log keeps it: the id of the stored state; empty if
// there is none.
type StateRef struct {
	ID string
	// State is the state itself, if it is known. It is not written.
	State json.RawMessage
}

// EventType returns STATE_SNAPSHOT.
func (StateRef) EventType() Type { return TypeStateSnapshot }

// AppendJSON implements [Event].
func (e StateRef) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeStateSnapshot)
	o.str("ref", e.ID)
	return o.end()
}

// ToolCallResultRef is a large TOOL_CALL_RESULT as a log keeps it: without the content,
// which is that of the tool message.
type ToolCallResultRef struct{ ToolCallResult }

// AppendJSON implements [Event].
func (e ToolCallResultRef) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeToolCallResult)
	o.str("messageId", e.MessageID)
	o.str("toolCallId", e.ToolCallID)
	o.str("ref", e.MessageID)
	o.opt("role", e.Role)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ActivitySnapshotRef is a large ACTIVITY_SNAPSHOT as a log keeps it: without the content,
// which is that of the activity's message.
type ActivitySnapshotRef struct{ ActivitySnapshot }

// AppendJSON implements [Event].
func (e ActivitySnapshotRef) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeActivitySnapshot)
	o.str("messageId", e.MessageID)
	o.str("activityType", e.ActivityType)
	o.str("ref", e.MessageID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ExpandResult replaces the reference in a [ToolCallResultRef] or an [ActivitySnapshotRef]
// with the content. It returns any other event unchanged.
func ExpandResult(data []byte, content json.RawMessage) []byte {
	// No string can contain these bytes, since its quotes would be escaped.
	const member = `,"ref":"`
	from := bytes.Index(data, []byte(member))
	if from < 0 {
		return data
	}
	end := from + len(member)
	for end < len(data) && data[end] != '"' {
		if data[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(data) {
		return data
	}
	out := make([]byte, 0, len(data)+len(content))
	out = append(append(out, data[:from]...), `,"content":`...)
	return append(append(out, content...), data[end+1:]...)
}

// ThenOf returns the messages that a stored [MessagesRef] shows after its leaf.
func ThenOf(data []byte) []json.RawMessage {
	var ref struct {
		Then []json.RawMessage `json:"then"`
	}
	if json.Unmarshal(data, &ref) != nil {
		return nil
	}
	return ref.Then
}

// RefOf returns the reference of a stored snapshot, or of a large result or activity; false
// for any other event.
func RefOf(data []byte) (string, bool) {
	t := TypeOf(data)
	if t != TypeMessagesSnapshot && t != TypeStateSnapshot && t != TypeToolCallResult && t != TypeActivitySnapshot {
		return "", false
	}
	var ref struct {
		Ref *string `json:"ref"`
	}
	if json.Unmarshal(data, &ref) != nil || ref.Ref == nil {
		return "", false
	}
	return *ref.Ref, true
}
