package thread

import (
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// RecordsOf returns the records of a commit as the log has them after it.
func RecordsOf(c *holdfast.Commit) []holdfast.Record {
	records := make([]holdfast.Record, len(c.Records))
	tag := c.Fence.Tag()
	for i, data := range c.Records {
		records[i] = holdfast.Record{Cursor: holdfast.Cursor{Number: c.Expect.Next + uint64(i), Tag: tag}, Data: data}
	}
	return records
}

// HeadAfter returns the head that a successful commit leaves.
func HeadAfter(c *holdfast.Commit) *holdfast.Head {
	return &holdfast.Head{
		Key: c.Key, User: c.User, Fence: c.Fence, Process: c.Process, ETag: c.ID,
		Next: c.Expect.Next + uint64(len(c.Records)), UpdatedAt: c.UpdatedAt, State: c.State,
	}
}

// EncodeEvents encodes events as the records of a log.
func EncodeEvents(events []agui.Event) [][]byte {
	records := make([][]byte, len(events))
	for i, ev := range events {
		records[i] = ev.AppendJSON(nil)
	}
	return records
}

// BytesOf returns how many bytes of data a commit writes.
func BytesOf(c *holdfast.Commit) (n int64) {
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
func ClearMarks(c *holdfast.Commit) {
	c.Put = slices.DeleteFunc(c.Put, func(v holdfast.Value) bool {
		return v.Kind == holdfast.KindPending || v.Kind == holdfast.KindIntent
	})
	c.Clear = append(c.Clear, holdfast.KindPending, holdfast.KindIntent)
}
