package thread

import "github.com/holdfast-agents/holdfast/internal/agui"

// Deltas: the records of a log that are pieces of an item.

// itemKey names an item that deltas belong to: a message, reasoning, or a call.
type itemKey struct {
	kind agui.Type
	id   string
}

// DeltaOf returns the text of a delta and the item it belongs to; false for any other
// record.
func DeltaOf(data []byte) (key itemKey, text string, ok bool) {
	if !agui.TypeOf(data).IsDelta() {
		return key, "", false
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
