package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// A run's log is what watchers of the run read. While it is fresh, its records are in
// the thread's live log. Some time after the run's end, upkeep stores it apart as one
// value, without what the message table holds already: of the deltas of a message only
// the lengths stay, so that a reader whose cursor lies between two of them gets the rest
// of the text; of a large tool result only the id of its message stays. This file makes
// such an archive, reads it, and finds the records of a run wherever they are.

// ArchivedLog is the log of a run that has ended, stored apart from the live one.
type ArchivedLog struct {
	// Format is the format of this value.
	Format int `json:"format"`
	// Run is the id of the run.
	Run string `json:"run"`
	// First is the number of the first record.
	First uint64 `json:"first"`
	// Tags are the tags of the records. Each holds until the next one begins.
	Tags []TagFrom `json:"tags"`
	// Entries are the records in order; each entry stands for one or more.
	Entries []LogEntry `json:"entries"`
}

// TagFrom is the tag of all records from a number on.
type TagFrom struct {
	From uint64 `json:"from"` // number of the first record that has it
	Tag  string `json:"tag"`  // the writer's, as cursors name it
}

// LogEntry is one record, or successive deltas of one item.
type LogEntry struct {
	// Data is the record; empty for deltas.
	Data json.RawMessage `json:"d,omitempty"`
	// Kind and ID name the item that the deltas belong to. Together they are its text
	// from Offset on.
	Kind agui.Type `json:"k,omitempty"`
	ID   string    `json:"i,omitempty"` // see Kind
	// Offset is where the first delta begins in the item's text, in bytes.
	Offset int `json:"o,omitempty"`
	// Lengths are the lengths of the deltas, in bytes.
	Lengths []int `json:"l,omitempty"`
}

// records returns how many records the entry stands for.
func (n *LogEntry) records() uint64 { return uint64(max(len(n.Lengths), 1)) }

// itemKey names an item that deltas belong to: a message, reasoning, or a call.
type itemKey struct {
	kind agui.Type
	id   string
}

// Texts are the complete texts of a thread's items, which archived logs refer to.
type Texts struct {
	items map[itemKey]string
	// Contents are the contents of the results, by the id of their message.
	Contents map[string]json.RawMessage
}

// TextsOf collects the texts from a thread's messages. It returns ErrUnreadable.
func TextsOf(stored []holdfast.StoredMessage) (*Texts, error) {
	t := &Texts{items: map[itemKey]string{}, Contents: map[string]json.RawMessage{}}
	for i := range stored {
		m, err := agui.DecodeMessage(stored[i].Data)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		switch holdfast.Role(m.Role) {
		case holdfast.RoleTool:
			t.Contents[m.ID] = m.Content
		case holdfast.RoleReasoning, holdfast.RoleAssistant:
			kind := agui.TypeTextMessageContent
			if m.Role == string(holdfast.RoleReasoning) {
				kind = agui.TypeReasoningMessageContent
			}
			var text string
			if json.Unmarshal(m.Content, &text) == nil {
				t.items[itemKey{kind, m.ID}] = text
			}
			for _, c := range m.ToolCalls {
				t.items[itemKey{agui.TypeToolCallArgs, c.ID}] = c.Function.Arguments
			}
		}
	}
	return t, nil
}

// ArchiveRun makes the archive of a run's records, of which there is at least one.
// Deltas that do not add up to what the message table holds stay as they are: they
// belong to answers that were taken back.
func ArchiveRun(run string, records []holdfast.Record, t *Texts) *ArchivedLog {
	a := &ArchivedLog{Format: Format, Run: run, First: records[0].Number}
	whole := map[itemKey]string{}
	for i := range records {
		if key, text, ok := DeltaOf(records[i].Data); ok {
			whole[key] += text
		}
	}
	offset := map[itemKey]int{}
	for i := range records {
		if n := len(a.Tags); n == 0 || a.Tags[n-1].Tag != records[i].Tag {
			a.Tags = append(a.Tags, TagFrom{records[i].Number, records[i].Tag})
		}
		key, text, ok := DeltaOf(records[i].Data)
		if kept, known := t.items[key]; !ok || !known || kept != whole[key] {
			a.Entries = append(a.Entries, plainEntry(records[i].Data, t))
			continue
		}
		if n := len(a.Entries); n == 0 || a.Entries[n-1].Kind != key.kind || a.Entries[n-1].ID != key.id {
			a.Entries = append(a.Entries, LogEntry{Kind: key.kind, ID: key.id, Offset: offset[key]})
		}
		last := &a.Entries[len(a.Entries)-1]
		last.Lengths = append(last.Lengths, len(text))
		offset[key] += len(text)
	}
	return a
}

// DeltaOf returns the text of a delta and the item it belongs to; false for any other
// record.
func DeltaOf(data []byte) (key itemKey, text string, ok bool) {
	switch agui.TypeOf(data) {
	case agui.TypeTextMessageContent, agui.TypeReasoningMessageContent, agui.TypeToolCallArgs:
	default:
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

// plainEntry returns an entry of one record. A large result that was written in full, as
// format 1 did, becomes a reference.
func plainEntry(data []byte, t *Texts) LogEntry {
	if _, isRef := agui.RefOf(data); isRef || len(data) < MinRef || agui.TypeOf(data) != agui.TypeToolCallResult {
		return LogEntry{Data: data}
	}
	ev, err := agui.DecodeEvent(data)
	result, ok := ev.(agui.ToolCallResult)
	if err != nil || !ok || string(t.Contents[result.MessageID]) != string(result.Content) {
		return LogEntry{Data: data}
	}
	return LogEntry{Data: agui.ToolCallResultRef{ToolCallResult: result}.AppendJSON(nil)}
}

// tag returns the tag of the record with that number.
func (a *ArchivedLog) tag(number uint64) string {
	tag := ""
	for _, t := range a.Tags {
		if t.From <= number {
			tag = t.Tag
		}
	}
	return tag
}

// After returns up to limit records after a cursor; false if the archive does not have
// the cursor's record. Successive deltas of an item become one record, which has the
// number of the last of them.
func (a *ArchivedLog) After(c holdfast.Cursor, limit int, t *Texts) ([]holdfast.Record, bool) {
	var out []holdfast.Record
	next, held := a.First, c == holdfast.Cursor{}
	for i := range a.Entries {
		n := &a.Entries[i]
		first := next
		next += n.records()
		skip := uint64(0) // how many of the entry's records the reader has
		if c.Number >= first && c.Number < next && c.Tag == a.tag(c.Number) {
			held, skip = true, c.Number-first+1
		}
		if c.Number >= next-1 || !held || len(out) >= limit {
			continue
		}
		out = append(out, holdfast.Record{
			Cursor: holdfast.Cursor{Number: next - 1, Tag: a.tag(next - 1)}, Data: n.data(skip, t),
		})
	}
	return out, held
}

// data returns the entry as one record, without the first skip deltas.
func (n *LogEntry) data(skip uint64, t *Texts) []byte {
	if n.Kind == "" {
		return n.Data
	}
	from, end := n.Offset, n.Offset
	for i, length := range n.Lengths {
		if uint64(i) < skip {
			from += length
		}
		end += length
	}
	whole := t.items[itemKey{n.Kind, n.ID}]
	text := ""
	if end <= len(whole) {
		text = whole[from:end]
	}
	return AppendDelta(nil, n.Kind, n.ID, []byte(text))
}

// RunLog is the records of one run.
type RunLog struct {
	Id      string            // the run's
	Records []holdfast.Record // from its RUN_STARTED on
}

// ByRun splits a log where runs begin. Records before the first run are left out.
func ByRun(records []holdfast.Record) []RunLog {
	var runs []RunLog
	for i := range records {
		if agui.TypeOf(records[i].Data) == agui.TypeRunStarted {
			if ev, err := agui.DecodeEvent(records[i].Data); err == nil {
				if started, ok := ev.(agui.RunStarted); ok {
					runs = append(runs, RunLog{Id: started.RunID})
				}
			}
		}
		if len(runs) > 0 {
			last := &runs[len(runs)-1]
			last.Records = append(last.Records, records[i])
		}
	}
	return runs
}

// MinRef is the size in bytes from which the log refers to the message of a tool's
// result instead of storing the result a second time.
const MinRef = 256

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
// needs no record of its own. A cursor that is nowhere is [holdfast.ErrCursor].
func (rd Reader) Records(ctx context.Context, key holdfast.ThreadKey, rec *Run, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
	records, err := rd.Store.Records(ctx, key, after, limit)
	// A run has at least one record, so there is always one after its beginning.
	gone := err == nil && after == rec.After && (len(records) == 0 || records[0].Number != after.Number+1)
	if !gone && !errors.Is(err, holdfast.ErrCursor) {
		return records, err
	}
	if gone {
		err = fmt.Errorf("the log of run %s is not there: %w", rec.ID, holdfast.ErrCursor)
	}
	data, archiveErr := rd.Store.Value(ctx, key, holdfast.KindLog, rec.ID)
	switch {
	case archiveErr == nil:
		return rd.archived(ctx, key, rec, data, after, limit)
	case !errors.Is(archiveErr, holdfast.ErrNotFound):
		return nil, archiveErr
	case after != rec.After:
		return nil, err
	}
	// Only the runs before this one are stored apart.
	first, err2 := rd.Store.Records(ctx, key, holdfast.Cursor{}, limit)
	if err2 != nil {
		return nil, err2
	}
	if len(first) == 0 || first[0].Number != after.Number+1 {
		return nil, err
	}
	return first, nil
}

// archived returns records of a run from data, its archived log.
func (rd Reader) archived(ctx context.Context, key holdfast.ThreadKey, rec *Run, data []byte, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
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
		after = holdfast.Cursor{}
	}
	records, held := a.After(after, limit, t)
	if !held {
		return nil, fmt.Errorf("thread %s, run %s, cursor %s: %w", key, rec.ID, after, holdfast.ErrCursor)
	}
	return records, nil
}

// LiveLog returns all records of the thread that are not archived.
func (rd Reader) LiveLog(ctx context.Context, t *Thread) ([]holdfast.Record, error) {
	var all []holdfast.Record
	after := holdfast.Cursor{}
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
