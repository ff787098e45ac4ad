package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// When a run has ended, its log is stored apart from the thread's live one, without
// what the message table holds: of the deltas of a message only their lengths stay,
// so that a reader whose cursor lies between two of them gets the rest of the text;
// of a tool's result only its message's id.

// archive is the log of a run that has ended.
type archive struct {
	Format int    `json:"format"`
	Run    string `json:"run"`
	// First is the number of the first record; each entry has one or more.
	First uint64 `json:"first"`
	// Tags are those of the records, each with the number from which on it is.
	Tags    []tagFrom `json:"tags"`
	Entries []entry   `json:"entries"`
}

type tagFrom struct {
	From uint64 `json:"from"`
	Tag  string `json:"tag"`
}

// entry is a record, or the deltas of one item that follow each other.
type entry struct {
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
func (n *entry) records() uint64 { return uint64(max(len(n.Lengths), 1)) }

// itemKey is what deltas belong to.
type itemKey struct {
	kind agui.Type
	id   string
}

// wholeTexts are the whole texts of all items of a thread, and the contents of results.
type wholeTexts struct {
	items    map[itemKey]string
	contents map[string]json.RawMessage
}

// textsOf collects them from the messages.
func textsOf(stored []holdfast.StoredMessage) (*wholeTexts, error) {
	t := &wholeTexts{items: map[itemKey]string{}, contents: map[string]json.RawMessage{}}
	for i := range stored {
		m, err := agui.DecodeMessage(stored[i].Data)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		switch holdfast.Role(m.Role) {
		case holdfast.RoleTool:
			t.contents[m.ID] = m.Content
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

// archiveRun makes the archive of a run's records. Deltas that do not add up to what
// the message table holds, those of answers that were given up, stay as they are.
func archiveRun(run string, records []holdfast.Record, t *wholeTexts) *archive {
	a := &archive{Format: Format, Run: run, First: records[0].Number}
	whole := map[itemKey]string{}
	for i := range records {
		if key, text, ok := deltaOf(records[i].Data); ok {
			whole[key] += text
		}
	}
	offset := map[itemKey]int{}
	for i := range records {
		if n := len(a.Tags); n == 0 || a.Tags[n-1].Tag != records[i].Tag {
			a.Tags = append(a.Tags, tagFrom{records[i].Number, records[i].Tag})
		}
		key, text, ok := deltaOf(records[i].Data)
		if kept, known := t.items[key]; !ok || !known || kept != whole[key] {
			a.Entries = append(a.Entries, plainEntry(records[i].Data, t))
			continue
		}
		if n := len(a.Entries); n == 0 || a.Entries[n-1].Kind != key.kind || a.Entries[n-1].ID != key.id {
			a.Entries = append(a.Entries, entry{Kind: key.kind, ID: key.id, Offset: offset[key]})
		}
		last := &a.Entries[len(a.Entries)-1]
		last.Lengths = append(last.Lengths, len(text))
		offset[key] += len(text)
	}
	return a
}

// deltaOf returns the text of a delta, and the item it belongs to.
func deltaOf(data []byte) (key itemKey, text string, ok bool) {
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
func plainEntry(data []byte, t *wholeTexts) entry {
	if _, isRef := agui.RefOf(data); isRef || len(data) < minRef || agui.TypeOf(data) != agui.TypeToolCallResult {
		return entry{Data: data}
	}
	ev, err := agui.DecodeEvent(data)
	result, ok := ev.(agui.ToolCallResult)
	if err != nil || !ok || string(t.contents[result.MessageID]) != string(result.Content) {
		return entry{Data: data}
	}
	return entry{Data: agui.ToolCallResultRef{ToolCallResult: result}.AppendJSON(nil)}
}

// tag is the tag of a record.
func (a *archive) tag(number uint64) string {
	tag := ""
	for _, t := range a.Tags {
		if t.From <= number {
			tag = t.Tag
		}
	}
	return tag
}

// after returns up to limit records after a cursor; false if the archive does not
// hold it. The deltas of an item that follow each other are one record, which has
// the number of the last one.
func (a *archive) after(c holdfast.Cursor, limit int, t *wholeTexts) ([]holdfast.Record, bool) {
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
func (n *entry) data(skip uint64, t *wholeTexts) []byte {
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
	return appendDelta(nil, &item{kind: n.Kind, id: n.ID, text: []byte(text)})
}

// records returns up to limit records of a run after a cursor, wherever they are.
// The cursor at which the run began is taken as it is: it is ours.
func (e *Engine) records(ctx context.Context, key holdfast.ThreadKey, rec *runRecord, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
	records, err := e.cfg.Store.Records(ctx, key, after, limit)
	// A run has at least one record, so there is always one after its beginning.
	gone := err == nil && after == rec.After && (len(records) == 0 || records[0].Number != after.Number+1)
	if !gone && !errors.Is(err, holdfast.ErrCursor) {
		return records, err
	}
	if gone {
		err = fmt.Errorf("the log of run %s is not there: %w", rec.ID, holdfast.ErrCursor)
	}
	data, archiveErr := e.cfg.Store.Value(ctx, key, holdfast.KindLog, rec.ID)
	switch {
	case archiveErr == nil:
		return e.archived(ctx, key, rec, data, after, limit)
	case !errors.Is(archiveErr, holdfast.ErrNotFound):
		return nil, archiveErr
	case after != rec.After:
		return nil, err
	}
	// Only the runs before this one are stored apart.
	first, err2 := e.cfg.Store.Records(ctx, key, holdfast.Cursor{}, limit)
	if err2 != nil {
		return nil, err2
	}
	if len(first) == 0 || first[0].Number != after.Number+1 {
		return nil, err
	}
	return first, nil
}

func (e *Engine) archived(ctx context.Context, key holdfast.ThreadKey, rec *runRecord, data []byte, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
	a := &archive{}
	if err := decodeValue(data, a); err != nil {
		return nil, err
	}
	stored, err := e.cfg.Store.Messages(ctx, key)
	if err != nil {
		return nil, err
	}
	t, err := textsOf(stored)
	if err != nil {
		return nil, err
	}
	if after == rec.After {
		after = holdfast.Cursor{}
	}
	records, held := a.after(after, limit, t)
	if !held {
		return nil, fmt.Errorf("thread %s, run %s, cursor %s: %w", key, rec.ID, after, holdfast.ErrCursor)
	}
	return records, nil
}

// endedThread is one whose log is due to be archived at a time.
type endedThread struct {
	key holdfast.ThreadKey
	due time.Time
}

// archiveSoon has the thread's log archived once ArchiveAfter has passed.
func (e *Engine) archiveSoon(key holdfast.ThreadKey) {
	select {
	case e.finished <- endedThread{key, e.cfg.Now().Add(e.cfg.ArchiveAfter)}:
	default: // the next run of the thread has it done
	}
}

// keepArchives archives the logs of threads, one after the other, in the order in
// which their runs ended.
func (e *Engine) keepArchives() {
	for {
		var t endedThread
		select {
		case <-e.ctx.Done():
			return
		case t = <-e.finished:
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(t.due.Sub(e.cfg.Now())):
		}
		err := e.archive(e.ctx, t.key)
		if err != nil && e.ctx.Err() == nil && !errors.Is(err, holdfast.ErrConflict) && !errors.Is(err, holdfast.ErrFenced) && !errors.Is(err, holdfast.ErrNotFound) {
			e.cfg.Log.Warn("a log could not be archived; it stays as it is", "thread", t.key.Thread, "error", err)
		}
	}
}

// archive stores the logs of the runs of a thread that does not run apart from it.
func (e *Engine) archive(ctx context.Context, key holdfast.ThreadKey) error {
	m := e.lock(key)
	defer m.Unlock()
	t, err := e.stored(ctx, key)
	if err != nil || t.st.Phase == phaseRunning {
		return err
	}
	records, err := e.liveLog(ctx, t)
	if err != nil || len(records) == 0 {
		return err
	}
	stored, err := e.cfg.Store.Messages(ctx, key)
	if err != nil {
		return err
	}
	all, err := textsOf(stored)
	if err != nil {
		return err
	}
	c := e.amend(t)
	c.Trim = t.head.Next - 1
	for _, run := range byRun(records) {
		c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindLog, ID: run.id, Data: mustJSON(archiveRun(run.id, run.records, all))})
	}
	return e.commit(ctx, t.place(), c)
}

// liveLog reads what is not archived yet.
func (e *Engine) liveLog(ctx context.Context, t *thread) ([]holdfast.Record, error) {
	var all []holdfast.Record
	after := holdfast.Cursor{}
	for after.Number+1 < t.head.Next {
		page, err := e.cfg.Store.Records(ctx, t.key, after, 4096)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].Cursor
	}
	return all, nil
}

// runRecords are the records of one run.
type runRecords struct {
	id      string
	records []holdfast.Record
}

// byRun cuts a log where runs begin.
func byRun(records []holdfast.Record) []runRecords {
	var runs []runRecords
	for i := range records {
		if agui.TypeOf(records[i].Data) == agui.TypeRunStarted {
			if ev, err := agui.DecodeEvent(records[i].Data); err == nil {
				if started, ok := ev.(agui.RunStarted); ok {
					runs = append(runs, runRecords{id: started.RunID})
				}
			}
		}
		if len(runs) > 0 {
			last := &runs[len(runs)-1]
			last.records = append(last.records, records[i])
		}
	}
	return runs
}
