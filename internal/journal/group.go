package journal

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// group is what becomes one commit.
type group struct {
	items   []item
	bytes   int
	commit  holdfast.Commit
	closing bool
	done    chan struct{}
	err     error
}

// item is one record to be. Deltas stay as text until they are committed, so
// that those that follow can join.
type item struct {
	kind agui.Type
	id   string
	text []byte
	data []byte
	// full is what watchers here are shown, where data only refers to it.
	full []byte
}

// newGroup gives the commit its id, so that a checkpoint in it can name it.
func (w *Writer) newGroup() *group {
	b := &group{done: make(chan struct{})}
	b.commit.ID = w.NewID("c")
	return b
}

func (w *Writer) append(ev agui.Event) {
	it := item{kind: ev.EventType(), data: ev.AppendJSON(nil)}
	if result, ok := ev.(agui.ToolCallResult); ok && len(result.Content) >= thread.MinRef {
		it.full, it.data = it.data, agui.ToolCallResultRef{ToolCallResult: result}.AppendJSON(nil)
	}
	w.next.items = append(w.next.items, it)
	w.last++
}

func emptyCommit(c *holdfast.Commit) bool {
	return c.State == nil && len(c.Messages) == 0 && len(c.Put) == 0 && len(c.Delete) == 0 && len(c.Clear) == 0 && c.InboxSeen == 0
}

// encodeItems writes the records into one buffer.
func encodeItems(items []item) [][]byte {
	if len(items) == 0 {
		return nil
	}
	size := 0
	for i := range items {
		size += len(items[i].text) + len(items[i].data) + 96
	}
	buf := make([]byte, 0, size)
	records := make([][]byte, len(items))
	for i := range items {
		it := &items[i]
		if it.data != nil {
			records[i] = it.data
			continue
		}
		start := len(buf)
		buf = thread.AppendDelta(buf, it.kind, it.id, it.text)
		records[i] = buf[start:len(buf):len(buf)]
	}
	return records
}
