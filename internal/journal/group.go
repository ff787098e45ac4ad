package journal

import (
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// group is what becomes one commit.
type group struct {
	items   []item       // become its records
	room    [1]item      // of items, for the group of one word that most are
	bytes   int          // of deltas
	words   int          // how many deltas there are
	commit  store.Commit // everything but records and position
	closing bool         // the last group: the Writer ends after it
	advance bool         // it is committed even if it is empty
	// last are the run's last events, and finish adds what belongs to them; see Finish.
	last   []agui.Event
	finish func(c *store.Commit, last store.Cursor)
	done   chan struct{} // closed when it is committed or has failed; nil while nobody waits
	err    error         // set before done is closed
}

// item becomes one record. A delta stays text until it is committed, so that those that
// follow can join it.
type item struct {
	kind agui.Type
	id   string
	said string // a delta that none has joined
	text []byte // those that have joined
	data []byte
	// full is what watchers in this process get, if data only refers to it.
	full []byte
}

// newGroup returns an empty group whose commit has its id already, so that a checkpoint
// in it can name it.
func (w *Writer) newGroup() *group {
	b := &group{}
	b.items = b.room[:0]
	b.commit.ID = w.NewID("c")
	return b
}

// join adds a delta to another one of its item.
func (it *item) join(text string) {
	if it.text == nil {
		it.text, it.said = append(make([]byte, 0, 2*(len(it.said)+len(text))), it.said...), ""
	}
	it.text = append(it.text, text...)
}

// awaited returns the group, which somebody is going to wait for; the caller holds the lock.
func (b *group) awaited() *group {
	if b.done == nil {
		b.done = make(chan struct{})
	}
	return b
}

// end lets those go on who wait for the group; the caller holds the lock.
func (b *group) end(err error) {
	b.err = err
	if b.done != nil {
		close(b.done)
	}
}

// append adds an event to the next group. A large result or activity goes into the log as a
// reference to its message, which is in the same commit, and a state as one to its blob.
func (w *Writer) append(ev agui.Event) {
	it := item{kind: agui.EventType(ev), data: agui.Append(nil, ev)}
	switch ev := ev.(type) {
	case agui.ToolCallResult:
		if len(ev.Content) >= thread.MinRef {
			it.full, it.data = it.data, agui.Append(nil, ev.Ref())
		}
	case agui.ActivitySnapshot:
		if len(ev.Content) >= thread.MinRef {
			it.full, it.data = it.data, agui.Append(nil, ev.Ref())
		}
	case agui.StateDelta:
		w.predicts.Store(true)
	case agui.StateRef:
		w.predicts.Store(false)
		if ev.State != nil {
			it.full = agui.AppendStateSnapshot(nil, ev.ID, ev.State)
		}
	case agui.StateDeltaRef:
		it.full = agui.AppendStateDelta(nil, ev.ID, ev.Delta)
	}
	w.next.items = append(w.next.items, it)
	w.last++
}

// emptyCommit reports whether the commit changes nothing besides the log.
func emptyCommit(c *store.Commit) bool {
	return c.State == nil && len(c.Messages) == 0 && len(c.Put) == 0 && len(c.Delete) == 0 && len(c.Clear) == 0 &&
		c.InboxSeen == 0
}

// encodeItems returns the records of the items, the deltas in one buffer.
func encodeItems(items []item) [][]byte {
	if len(items) == 0 {
		return nil
	}
	size := 0
	for i := range items {
		size += len(items[i].said) + len(items[i].text) + len(items[i].data) + 96
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
		text := it.said
		if it.text != nil {
			text = string(it.text)
		}
		buf = agui.AppendDelta(buf, it.kind, it.id, text)
		records[i] = buf[start:len(buf):len(buf)]
	}
	return records
}
