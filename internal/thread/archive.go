package thread

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/store"
)

// The archived form of a run's log. Deltas are most of a log, and their text is also in the
// thread's messages, so an archived log stores successive deltas as one entry that refers to
// the complete text. Readers of the archive get the records back.

// MinRef is the size in bytes from which the log refers to the message of a tool's
// result instead of storing the result a second time.
const MinRef = 128

// ArchivedLog is the log of a run that has ended, stored apart from the live one.
type ArchivedLog struct {
	// Format is the format of this value.
	Format int `json:"dataFormat"`
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

// Texts are the complete texts of a thread's items, which archived logs refer to.
type Texts struct {
	items map[itemKey]string
	// Contents are the contents of the results, by the id of their message.
	Contents map[string]json.RawMessage
}

// messages returns the ids of the messages that the archive tells of.
func (a *ArchivedLog) messages() (ids []string) {
	for i := range a.Entries {
		ids = appendMessage(ids, a.Entries[i].Data)
	}
	return ids
}

// appendMessage adds the id of the message that a record begins, or whose call it begins.
func appendMessage(ids []string, data []byte) []string {
	member := ""
	switch agui.TypeOf(data) {
	case agui.TypeTextMessageStart, agui.TypeReasoningMessageStart:
		member = "messageId"
	case agui.TypeToolCallStart:
		member = "parentMessageId"
	default:
		return ids
	}
	id := ""
	if read := strictjson.ReadObject(data, func(name, value []byte) bool {
		if string(name) == member && value[0] == '"' {
			id = strictjson.Text(value)
		}
		return true
	}); !read || id == "" {
		return ids
	}
	return append(ids, id)
}

// Texts returns the texts that the archive's entries are taken from: those of the messages that it tells
// of, because another message may have a call with the same id, such as one whose arguments a person has
// edited. Builds from before took them from all messages, so these are used where only they have all.
// It returns ErrUnreadable.
func (a *ArchivedLog) Texts(stored []store.Message) (*Texts, error) {
	t, err := TextsOf(those(stored, a.messages()))
	if err != nil || a.whole(t) {
		return t, err
	}
	if all, err := TextsOf(stored); err == nil && a.whole(all) {
		return all, nil
	}
	return t, nil
}

// whole reports whether the texts are there that all entries are taken from.
func (a *ArchivedLog) whole(t *Texts) bool {
	for i := range a.Entries {
		if !a.Entries[i].whole(t) {
			return false
		}
	}
	return true
}

// those returns the messages with the ids.
func those(stored []store.Message, ids []string) (found []store.Message) {
	named := make(map[string]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	for i := range stored {
		if named[stored[i].ID] {
			found = append(found, stored[i])
		}
	}
	return found
}

// TextsOf collects the texts from a thread's messages. It returns ErrUnreadable.
func TextsOf(stored []store.Message) (*Texts, error) {
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

// delta is a record that may be one.
type delta struct {
	key  itemKey
	text string
	is   bool
}

// ArchiveRun makes the archive of a run's records, of which there is at least one.
// Deltas that do not add up to what the message table holds stay as they are: they
// belong to answers that were taken back. Of predictions only the places remain.
func ArchiveRun(run string, records []store.Record, t *Texts) *ArchivedLog {
	a := &ArchivedLog{Format: FormatBefore, Run: run, First: records[0].Number}
	deltas := make([]delta, len(records))
	whole := map[itemKey]*strings.Builder{}
	for i := range records {
		d := &deltas[i]
		if d.key, d.text, d.is = DeltaOf(records[i].Data); d.is {
			if whole[d.key] == nil {
				whole[d.key] = &strings.Builder{}
			}
			whole[d.key].WriteString(d.text)
		}
	}
	kept := map[itemKey]bool{}
	for key, text := range whole {
		stored, there := t.items[key]
		kept[key] = there && stored == text.String()
	}
	offset := map[itemKey]int{}
	for i := range records {
		if n := len(a.Tags); n == 0 || a.Tags[n-1].Tag != records[i].Tag {
			a.Tags = append(a.Tags, TagFrom{records[i].Number, records[i].Tag})
		}
		key, text := deltas[i].key, deltas[i].text
		if !deltas[i].is || !kept[key] {
			a.Entries = append(a.Entries, LogEntry{Data: settled(records[i].Data)})
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

// Count returns how many records the archive stands for.
func (a *ArchivedLog) Count() uint64 {
	n := uint64(0)
	for i := range a.Entries {
		n += a.Entries[i].records()
	}
	return n
}

// Check describes what is wrong with an archive of the given run, or returns "" if
// nothing is. t must hold the texts of the run's thread.
func (a *ArchivedLog) Check(run string, t *Texts) string {
	if a.Run != run || len(a.Entries) == 0 || len(a.Tags) == 0 || a.Tags[0].From != a.First {
		return fmt.Sprintf("it is that of run %q with %d entries from record %d on", a.Run, len(a.Entries), a.First)
	}
	var events []agui.Event
	for i := range a.Entries {
		n := &a.Entries[i]
		end := n.Offset
		for _, length := range n.Lengths {
			if end += length; length < 0 || n.Offset < 0 {
				return fmt.Sprintf("entry %d has a negative length", i)
			}
		}
		// The entries of a pruned message have no text.
		if whole, there := t.items[itemKey{n.Kind, n.ID}]; there && end > len(whole) {
			return fmt.Sprintf("entry %d has %d bytes of %s, which has %d", i, end, n.ID, len(whole))
		}
		ev, err := EventOf(n.data(0, t))
		if err != nil {
			return fmt.Sprintf("entry %d: %v", i, err)
		}
		events = append(events, ev)
	}
	if err := agui.Verify(slices.Values(events)); err != nil {
		return err.Error()
	}
	return ""
}

// whole reports whether the text is there that the entry's deltas are taken from.
func (n *LogEntry) whole(t *Texts) bool {
	if n.Kind == "" {
		return true
	}
	end := n.Offset
	for _, length := range n.Lengths {
		if end += length; n.Offset < 0 || length < 0 || end < 0 {
			return false // it is damaged
		}
	}
	text, there := t.items[itemKey{n.Kind, n.ID}]
	return there && end <= len(text)
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
	return agui.AppendDelta(nil, n.Kind, n.ID, text)
}

// RunLog is the records of one run.
type RunLog struct {
	ID      string         // the run's
	Records []store.Record // from its RUN_STARTED on
}

// ByRun splits a log where runs begin. Records before the first run are left out.
func ByRun(records []store.Record) []RunLog {
	var runs []RunLog
	for i := range records {
		if agui.TypeOf(records[i].Data) == agui.TypeRunStarted {
			if ev, err := agui.DecodeEvent(records[i].Data); err == nil {
				if started, ok := ev.(agui.RunStarted); ok {
					runs = append(runs, RunLog{ID: started.RunID})
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

// EventOf decodes a record of a log. A snapshot, which a log stores as a reference, is
// returned as that reference; a large result or activity is returned with empty content.
func EventOf(data []byte) (agui.Event, error) {
	if ref, ok := agui.RefOf(data); ok {
		switch agui.TypeOf(data) {
		case agui.TypeStateSnapshot:
			return agui.StateRef{ID: ref}, nil
		case agui.TypeStateDelta:
			return agui.StateDeltaRef{ID: ref}, nil
		case agui.TypeMessagesSnapshot:
			return agui.MessagesRef{Leaf: ref, Then: agui.ThenOf(data)}, nil
		case agui.TypeActivitySnapshot:
			data = agui.ExpandResult(data, []byte("{}"))
		default:
			data = agui.ExpandResult(data, []byte(`""`))
		}
	}
	return agui.DecodeEvent(data)
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
