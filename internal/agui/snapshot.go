package agui

// Snapshots: events that replace what a client shows, written out whole or piece by piece,
// and the references that a log keeps in place of them and of large results.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"reflect"
)

// MessagesSnapshot replaces the client's messages.
type MessagesSnapshot struct {
	Base
	Messages []Message `json:"messages"`
}

func appendMessages(dst []byte, e *MessagesSnapshot) []byte {
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
	o.members(reflect.ValueOf(base), baseMembers)
	return o.end()
}

// MessagesSnapshotPieces is a MESSAGES_SNAPSHOT in the dialect, of messages that have
// already been encoded, piece by piece: each message is a piece of its own.
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

// Shown turns the messages of a history, which are encoded, into others that a client understands better.
type Shown func(history iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error]

// MessagesRef is a MESSAGES_SNAPSHOT as a log keeps it: a reference to the leaf of the
// history, expanded when it is sent, so that a log does not grow with the history.
type MessagesRef struct {
	Base
	Leaf string `json:"ref"` // id of the last message
	// Then are messages after the leaf that are not in the history yet: they wait for the
	// results of calls.
	Then []json.RawMessage `json:"then,omitempty"`
}

// ToolCallResultRef is a large TOOL_CALL_RESULT as a log keeps it: without the content,
// which is that of the tool message.
type ToolCallResultRef struct {
	Base
	MessageID     string `json:"messageId"`
	ToolCallID    string `json:"toolCallId"`
	Ref           string `json:"ref"`
	Role          string `json:"role,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// Ref returns the result as a log keeps it if it is large.
func (e *ToolCallResult) Ref() ToolCallResultRef {
	return ToolCallResultRef{
		Base:          e.Base,
		MessageID:     e.MessageID,
		ToolCallID:    e.ToolCallID,
		Ref:           e.MessageID,
		Role:          e.Role,
		SubagentRunID: e.SubagentRunID,
	}
}

// ActivitySnapshotRef is a large ACTIVITY_SNAPSHOT as a log keeps it: without the content,
// which is that of the activity's message, or of the one that has changed it.
type ActivitySnapshotRef struct {
	Base
	MessageID     string `json:"messageId"`
	ActivityType  string `json:"activityType"`
	Ref           string `json:"ref"`
	Replace       *bool  `json:"replace,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// Ref returns the activity as a log keeps it if it is large.
func (e *ActivitySnapshot) Ref() ActivitySnapshotRef {
	return ActivitySnapshotRef{
		Base:          e.Base,
		MessageID:     e.MessageID,
		ActivityType:  e.ActivityType,
		Ref:           cmp.Or(e.Stored, e.MessageID),
		Replace:       e.Replace,
		SubagentRunID: e.SubagentRunID,
	}
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
	switch TypeOf(data) {
	case TypeMessagesSnapshot, TypeStateSnapshot, TypeStateDelta, TypeToolCallResult, TypeActivitySnapshot:
	default:
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
