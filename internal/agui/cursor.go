package agui

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// Cursors inside events, for clients that ask for them: what is a frame's id in a stream of
// Server-Sent Events is then also metadata.holdfast.cursor of its event. A frame without an id
// has none.

// WithCursors returns the reply with the cursors in the events.
func (r *Reply) WithCursors() *Reply {
	out := *r
	out.Frames = func(yield func([]Frame, error) bool) {
		for frames, err := range r.Frames {
			// Others may be sent the same frames.
			marked := make([]Frame, len(frames))
			for i := range frames {
				marked[i] = frames[i].withCursor()
			}
			if !yield(marked, err) {
				return
			}
		}
	}
	return &out
}

// withCursor returns the frame with its id in the event.
func (f Frame) withCursor() Frame {
	if f.ID == "" {
		return f
	}
	if f.Pieces == nil {
		f.Data = withCursor(f.Data, f.ID)
		return f
	}
	pieces := f.Pieces
	f.Pieces = func(yield func([]byte, error) bool) {
		first := true
		for piece, err := range pieces {
			if first && err == nil {
				piece = firstWithCursor(piece, f.ID)
			}
			first = false
			if !yield(piece, err) {
				return
			}
		}
	}
	return f
}

// firstWithCursor is withCursor for the first piece of an event: all of it or, of the snapshot
// of messages, which has no metadata of its own, the beginning.
func firstWithCursor(piece []byte, cursor string) []byte {
	rest, is := bytes.CutPrefix(piece, []byte(`{"type":"`+string(TypeMessagesSnapshot)+`",`))
	if !is {
		return withCursor(piece, cursor)
	}
	o := event(make([]byte, 0, len(piece)+64), TypeMessagesSnapshot)
	o.raw("metadata", cursorMetadata(cursor))
	return append(append(o.b, ','), rest...)
}

// withCursor returns an event in this package's own encoding with the cursor in its metadata,
// beside what that has.
func withCursor(data []byte, cursor string) []byte {
	out := make([]byte, 0, len(data)+64)
	if !bytes.Contains(data, []byte(`"metadata":`)) {
		o := object{b: append(out, data[:len(data)-1]...)}
		o.raw("metadata", cursorMetadata(cursor))
		return o.end()
	}
	o := begin(out)
	metadata := cursorMetadata(cursor)
	for name, value := range strictjson.Members(data) {
		if string(name) == "metadata" {
			metadata = beside(value, cursor)
			continue
		}
		o.always(string(name), value)
	}
	o.raw("metadata", metadata)
	return o.end()
}

// cursorMetadata returns metadata that has only the cursor.
func cursorMetadata(cursor string) json.RawMessage {
	b := append(make([]byte, 0, 64), `{"holdfast":{"cursor":`...)
	return append(appendString(b, cursor), "}}"...)
}

// beside adds the cursor to metadata. Metadata that are no object are replaced.
func beside(metadata json.RawMessage, cursor string) json.RawMessage {
	var all, own map[string]json.RawMessage
	if json.Unmarshal(metadata, &all) != nil || all == nil {
		return cursorMetadata(cursor)
	}
	if json.Unmarshal(all["holdfast"], &own) != nil || own == nil {
		own = map[string]json.RawMessage{}
	}
	own["cursor"] = appendString(nil, cursor)
	// A value that was just decoded can be encoded.
	all["holdfast"], _ = json.Marshal(own)
	merged, _ := json.Marshal(all)
	return merged
}
