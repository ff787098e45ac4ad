package thread

import (
	"bytes"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Deltas: the records of a log that are pieces of an item.

// itemKey names an item that deltas belong to: a message, reasoning, or a call.
type itemKey struct {
	kind agui.Type
	id   string
}

// DeltaOf returns the text of a delta and the item it belongs to; false for any other
// record.
func DeltaOf(data []byte) (key itemKey, text string, ok bool) {
	kind := agui.TypeOf(data)
	if !kind.IsDelta() {
		return key, "", false
	}
	if id, text, plain := plainDelta(kind, data); plain {
		return itemKey{kind, id}, text, true
	}
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		return key, "", false
	}
	switch ev := ev.(type) {
	case agui.TextMessageContent:
		return itemKey{agui.EventType(ev), ev.MessageID}, ev.Delta, true
	case agui.ReasoningMessageContent:
		return itemKey{agui.EventType(ev), ev.MessageID}, ev.Delta, true
	case agui.ToolCallArgs:
		return itemKey{agui.EventType(ev), ev.ToolCallID}, ev.Delta, true
	}
	return key, "", false
}

// plainDelta reads a delta as it is written, of which nothing is escaped and nothing else is said:
// most are. Decoding them is most of the time that it takes to archive a log.
func plainDelta(kind agui.Type, data []byte) (id, text string, plain bool) {
	member := `","messageId":"`
	if kind == agui.TypeToolCallArgs {
		member = `","toolCallId":"`
	}
	rest, ok1 := bytes.CutPrefix(data, []byte(`{"type":"`+string(kind)+member))
	before, rest, ok2 := bytes.Cut(rest, []byte(`","delta":"`))
	after, ok3 := bytes.CutSuffix(rest, []byte(`"}`))
	if !ok1 || !ok2 || !ok3 || bytes.IndexByte(data, '\\') >= 0 || bytes.IndexByte(before, '"') >= 0 ||
		bytes.IndexByte(after, '"') >= 0 || !utf8.Valid(data) {
		return "", "", false
	}
	return string(before), string(after), true
}
