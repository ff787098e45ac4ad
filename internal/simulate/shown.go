package simulate

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
)

// The documents of a thread as a page has them, which is what is stored.

// shown are the documents of a thread as a page has them.
type shown struct {
	state json.RawMessage
	last  uint64 // the number of the record that it has the state from; 0 if that was no record
	shows map[string]json.RawMessage
}

// take takes in what an event says of a document. at is the number of its record; 0 if it has none.
func (p *shown) take(at uint64, ev agui.Event) (err error) {
	if p.shows == nil {
		p.shows = map[string]json.RawMessage{}
	}
	switch e := ev.(type) {
	case agui.StateSnapshot:
		p.state, p.last = e.Snapshot, at
	case agui.StateDelta:
		p.last = at
		p.state, err = jsonpatch.Change(p.state, e.Delta)
	case agui.ActivitySnapshot:
		p.shows[e.MessageID] = e.Content
	case agui.ActivityDelta:
		if p.shows[e.MessageID] != nil {
			p.shows[e.MessageID], err = jsonpatch.Change(p.shows[e.MessageID], e.Patch)
		}
	case agui.MessagesSnapshot:
		clear(p.shows)
		for i := range e.Messages {
			if m := &e.Messages[i]; m.Role == string(holdfast.RoleActivity) {
				p.shows[m.ID] = m.Content
			}
		}
	}
	return err
}

// alike reports whether two documents say the same. A page of a thread without a state is shown an empty one.
func alike(a, b json.RawMessage) bool {
	whole := func(doc json.RawMessage) json.RawMessage {
		if text := bytes.TrimSpace(doc); len(text) == 0 || string(text) == "null" {
			return json.RawMessage("{}")
		}
		return doc
	}
	return jsonpatch.Equal(whole(a), whole(b))
}
