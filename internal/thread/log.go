package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// ArchivedLog is the log of a run that has ended.
type ArchivedLog struct {
	Format int    `json:"format"`
	Run    string `json:"run"`
	// First is the number of the first record; each entry has one or more.
	First uint64 `json:"first"`
	// Tags are those of the records, each with the number from which on it is.
	Tags    []TagFrom  `json:"tags"`
	Entries []LogEntry `json:"entries"`
}

type TagFrom struct {
	From uint64 `json:"from"`
	Tag  string `json:"tag"`
}

// LogEntry is a record, or the deltas of one item that follow each other.
type LogEntry struct {
	// Data is the record.
	Data json.RawMessage `json:"d,omitempty"`
	// Kind and ID name the item that deltas belong to. They are its text from the
	// byte Offset on; Lengths are theirs, in bytes.
	Kind    agui.Type `json:"k,omitempty"`
	ID      string    `json:"i,omitempty"`
	Offset  int       `json:"o,omitempty"`
	Lengths []int     `json:"l,omitempty"`
}

// records is how many records the entry stands for.
func (n *LogEntry) records() uint64 { return uint64(max(len(n.Lengths), 1)) }

// itemKey is what deltas belong to.
type itemKey struct {
	kind agui.Type
	id   string
}

// Texts are the whole texts of all items of a thread, and the contents of results.
type Texts struct {
	items    map[itemKey]string
	Contents map[string]json.RawMessage
}

// TextsOf collects them from the messages.
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

// ArchiveRun makes the archive of a run's records. Deltas that do not add up to what
// the message table holds, those of answers that were given up, stay as they are.
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

// DeltaOf returns the text of a delta, and the item it belongs to.
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

// plainEntry keeps a record; a large result that was written in full, as format 1
// did, becomes a reference.
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

// tag is the tag of a record.
func (a *ArchivedLog) tag(number uint64) string {
	tag := ""
	for _, t := range a.Tags {
		if t.From <= number {
			tag = t.Tag
		}
	}
	return tag
}

// After returns up to limit records after a cursor; false if the archive does not
// hold it. The deltas of an item that follow each other are one record, which has
// the number of the last one.
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

// data writes the entry out, without the first records of it.
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

// RunLog are the records of one run.
type RunLog struct {
	Id      string
	Records []holdfast.Record
}

// ByRun cuts a log where runs begin.
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

// MinRef is the size in bytes from which on the log does not keep a tool's result a
// second time: its message has it.
const MinRef = 256

// AppendDelta appends a delta of the item: of a message, of reasoning or of a call.
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

// Records returns up to limit records of a run after a cursor, wherever they are.
// The cursor at which the run began is taken as it is: it is ours.
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

// LiveLog reads what is not archived yet.
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
