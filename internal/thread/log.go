package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// A run's log is what watchers of the run read. While it is fresh, its records are in
// the thread's live log. Some time after the run's end, upkeep stores it apart as one
// value, without what the message table holds already: of the deltas of a message only
// the lengths stay, so that a reader whose cursor lies between two of them gets the rest
// of the text; of a large tool result only the id of its message stays. This file makes
// such an archive, reads it, and finds the records of a run wherever they are.

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
		return itemKey{ev.EventType(), ev.MessageID}, ev.Delta, true
	case agui.ReasoningMessageContent:
		return itemKey{ev.EventType(), ev.MessageID}, ev.Delta, true
	case agui.ToolCallArgs:
		return itemKey{ev.EventType(), ev.ToolCallID}, ev.Delta, true
	}
	return key, "", false
}

// After returns up to limit records after a cursor; false if the archive does not have
// the cursor's record, or the text of a record after it, whose message was pruned.
// Successive deltas of an item become one record, which has the number of the last of them.
func (a *ArchivedLog) After(c store.Cursor, limit int, t *Texts) ([]store.Record, bool) {
	var out []store.Record
	next, held := a.First, c == store.Cursor{}
	for i := range a.Entries {
		n := &a.Entries[i]
		first := next
		next += n.records()
		skip := uint64(0) // how many of the entry's records the reader has
		if c.Number >= first && c.Number < next && c.Tag == a.tag(c.Number) {
			held, skip = true, c.Number-first+1
		}
		if c.Number >= next-1 || !held {
			continue
		}
		if !n.whole(t) {
			return nil, false
		}
		if len(out) >= limit {
			continue
		}
		out = append(out, store.Record{
			Cursor: store.Cursor{Number: next - 1, Tag: a.tag(next - 1)}, Data: n.data(skip, t),
		})
	}
	return out, held
}

// MinRef is the size in bytes from which the log refers to the message of a tool's
// result instead of storing the result a second time.
const MinRef = 128

// AppendDelta appends a delta of an item to buf: of a message, of reasoning, or of a
// call's arguments.
func AppendDelta(buf []byte, kind agui.Type, id string, text []byte) []byte {
	switch kind {
	case agui.TypeTextMessageContent:
		return agui.TextMessageContent{MessageID: id, Delta: string(text)}.AppendJSON(buf)
	case agui.TypeReasoningMessageContent:
		return agui.ReasoningMessageContent{MessageID: id, Delta: string(text)}.AppendJSON(buf)
	default:
		return agui.ToolCallArgs{ToolCallID: id, Delta: string(text)}.AppendJSON(buf)
	}
}

// Records returns up to limit records of a run after a cursor, from the live log or from
// the archive. after may be rec.After, the position before the run's first record, which
// needs no record of its own. A cursor that is nowhere is [store.ErrCursor].
func (rd Reader) Records(
	ctx context.Context,
	key store.ThreadKey,
	rec *Run,
	after store.Cursor,
	limit int,
) ([]store.Record, error) {
	records, err := rd.Store.Records(ctx, key, after, limit)
	// A run has at least one record, so there is always one after its beginning.
	gone := err == nil && after == rec.After && (len(records) == 0 || records[0].Number != after.Number+1)
	if !gone && !errors.Is(err, store.ErrCursor) {
		return records, err
	}
	if gone {
		err = fmt.Errorf("the log of run %s is not there: %w", rec.ID, store.ErrCursor)
	}
	data, archiveErr := rd.Store.Value(ctx, key, store.KindLog, rec.ID)
	switch {
	case archiveErr == nil:
		return rd.archived(ctx, key, rec, data, after, limit)
	case !errors.Is(archiveErr, store.ErrNotFound):
		return nil, archiveErr
	case after != rec.After:
		return nil, err
	}
	// Only the runs before this one are stored apart.
	first, err2 := rd.Store.Records(ctx, key, store.Cursor{}, limit)
	if err2 != nil {
		return nil, err2
	}
	if len(first) == 0 || first[0].Number != after.Number+1 {
		return nil, err
	}
	return first, nil
}

// archived returns records of a run from data, its archived log.
func (rd Reader) archived(
	ctx context.Context,
	key store.ThreadKey,
	rec *Run,
	data []byte,
	after store.Cursor,
	limit int,
) ([]store.Record, error) {
	a := &ArchivedLog{}
	if err := Decode(data, a); err != nil {
		return nil, err
	}
	stored, err := rd.Store.Messages(ctx, key)
	if err != nil {
		return nil, err
	}
	t, err := TextsOf(stored)
	if err != nil {
		return nil, err
	}
	if after == rec.After {
		after = store.Cursor{}
	}
	records, held := a.After(after, limit, t)
	if !held {
		return nil, fmt.Errorf("thread %s, run %s, cursor %s: %w", key, rec.ID, after, store.ErrCursor)
	}
	return records, nil
}

// LiveLog returns all records of the thread that are not archived.
func (rd Reader) LiveLog(ctx context.Context, t *Thread) ([]store.Record, error) {
	var all []store.Record
	after := store.Cursor{}
	for after.Number+1 < t.Head.Next {
		page, err := rd.Store.Records(ctx, t.Key, after, 4096)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].Cursor
	}
	return all, nil
}
