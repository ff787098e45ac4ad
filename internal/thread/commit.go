package thread

import (
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// RecordsOf returns the records of a commit as the log has them after it.
func RecordsOf(c *store.Commit) []store.Record {
	records := make([]store.Record, len(c.Records))
	tag := c.Fence.Tag()
	for i, data := range c.Records {
		records[i] = store.Record{Cursor: store.Cursor{Number: c.Expect.Next + uint64(i), Tag: tag}, Data: data}
	}
	return records
}

// HeadAfter returns the head that a successful commit leaves.
func HeadAfter(c *store.Commit) *store.Head {
	return &store.Head{
		Key:       c.Key,
		User:      c.User,
		Fence:     c.Fence,
		Process:   c.Process,
		ETag:      c.ID,
		Next:      c.Expect.Next + uint64(len(c.Records)),
		UpdatedAt: c.UpdatedAt,
		State:     c.State,
	}
}

// EncodeEvents encodes events as the records of a log.
func EncodeEvents(events []agui.Event) [][]byte {
	records := make([][]byte, len(events))
	for i, ev := range events {
		records[i] = agui.Append(nil, ev)
	}
	return records
}

// BytesOf returns how many bytes of data a commit writes.
func BytesOf(c *store.Commit) (n int64) {
	for i := range c.Records {
		n += int64(len(c.Records[i]))
	}
	for i := range c.Messages {
		n += int64(len(c.Messages[i].Data))
	}
	for i := range c.Put {
		n += int64(len(c.Put[i].Data))
	}
	return n
}

// ClearMarks has the commit c remove the intents and the pending writes, because its
// checkpoint holds the results. A commit clears before it puts, so those that an earlier
// step put into c are taken out of it.
func ClearMarks(c *store.Commit) {
	c.Put = slices.DeleteFunc(c.Put, func(v store.Value) bool {
		return v.Kind == store.KindPending || v.Kind == store.KindIntent
	})
	c.Clear = append(c.Clear, store.KindPending, store.KindIntent)
}
