package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The record of all that has really happened.

// truth is what has really happened. World.mu guards it.
type truth struct {
	threads map[string]*known
	former  map[string][]*known // threads of the same names, which were deleted
	calls   map[string]*done    // by idempotency key
	ledger  map[string]*reserved
	spent   int64             // settled
	counted bool              // the ledger was asked for something since it was looked at
	begun   map[string]string // the runs that clients were told of, by id; their threads
	handed  map[string]*handed
	titles  map[string]*title // by what they say
	rewinds map[string]bool   // the threads that somebody has asked to take back, even before they were deleted
}

// known is what has happened to a thread.
type known struct {
	position store.Position
	process  string
	records  []store.Record
	messages map[string]message
	results  map[string]string // the codes of results, by call
	titled   bool              // somebody has asked for a title
	rewound  bool              // somebody has asked to go back
	// forgotten are the messages that were removed.
	forgotten map[string]bool
	// taken is when the thread was taken over from processes whose leases had not ended.
	taken map[string]clock.Moment
	docs  documents
}

// message is what is known of a message.
type message struct {
	parent string
	result string // the call whose result it is; empty for most
}

// has reports whether the thread has a message.
func (k *known) has(id string) bool {
	_, has := k.messages[id]
	return has
}

// ended reports whether the log says that a run has ended.
func (k *known) ended(run string) bool {
	running := ""
	for _, rec := range k.records {
		ev, err := agui.DecodeEvent(rec.Data)
		if err != nil {
			continue
		}
		switch e := ev.(type) {
		case agui.RunStarted:
			running = e.RunID
		case agui.RunFinished, agui.RunError:
			if running == run {
				return true
			}
		}
	}
	return false
}

// follows reports whether a message comes after another one.
func (k *known) follows(id, before string) bool {
	for id != "" && id != before {
		id = k.messages[id].parent
	}
	return id == before
}

// done is what has happened to a call.
type done struct {
	id, name, arguments string
	starts              int
	ended               bool
}

// reserved is a reservation in the ledger.
type reserved struct {
	amount  int64
	settled bool
}

func (t *truth) init() {
	t.threads, t.former, t.calls = map[string]*known{}, map[string][]*known{}, map[string]*done{}
	t.ledger, t.begun = map[string]*reserved{}, map[string]string{}
	t.handed, t.titles, t.rewinds = map[string]*handed{}, map[string]*title{}, map[string]bool{}
}

// of returns what has happened to a thread.
func (t *truth) of(id string) *known {
	k := t.threads[id]
	if k == nil {
		k = &known{
			position: store.Position{Next: 1},
			messages: map[string]message{},
			results:  map[string]string{},
			rewound:  t.rewinds[id],
		}
		k.docs.init()
		t.threads[id] = k
	}
	return k
}

// recordsTo returns the records of a thread that end with a cursor, and which of the threads it is
// that have had this name; nil if none has it.
func (t *truth) recordsTo(id string, at store.Cursor) ([]store.Record, int) {
	for i, k := range append(slices.Clone(t.former[id]), t.of(id)) {
		if at.Number > 0 && at.Number <= uint64(len(k.records)) && k.records[at.Number-1].Cursor == at {
			return k.records[:at.Number], i
		}
	}
	return nil, 0
}

// delete takes in that a thread was deleted, where it stood.
func (t *truth) delete(id string, at store.Position) {
	k := t.threads[id]
	if k == nil || k.position != at {
		return // there was none
	}
	delete(t.threads, id)
	t.former[id] = append(t.former[id], k)
	maps.DeleteFunc(t.begun, func(_, of string) bool { return of == id })
	maps.DeleteFunc(t.handed, func(_ string, h *handed) bool { return h.thread == id })
	maps.DeleteFunc(t.titles, func(_ string, one *title) bool { return one.thread == id })
}

// describe says what an event is, for the story.
func describe(data []byte) string {
	var e struct {
		Type, Delta, ToolCallName, ToolCallID, Name, Code string
		Outcome                                           struct{ Type string }
	}
	_ = json.Unmarshal(data, &e)
	text := e.Type
	for _, part := range []string{e.ToolCallName, e.ToolCallID, e.Delta, e.Name, e.Code, e.Outcome.Type} {
		if part != "" {
			text += " " + part
		}
	}
	return text
}

// handed is a call that was handed out.
type handed struct {
	thread, id, tool string
	token            string // the newest
	sent             int    // how many results were sent
	taken            string // the hash of the one that a server has taken
	text             string // what the model is to read of it; empty for a failure
}

// denied says which result a model is not told although it was taken; empty if there is none.
func (t *truth) denied(req *holdfast.ModelRequest) string {
	for _, m := range req.Messages {
		if h := t.handed[req.Thread+" "+m.CallID]; h != nil && h.text != "" && m.Text != h.text {
			return fmt.Sprintf("the model is told %q as the result of %s, which is %q", m.Text, h.id, h.text)
		}
	}
	return ""
}

// title is a title that a thread was to get.
type title struct {
	thread  string
	stored  bool
	refused bool // it was said that it is not stored
}

// entitled takes in that a run says of a thread how it is described.
func (t *truth) entitled(k *known, record []byte) {
	if !k.titled || agui.TypeOf(record) != agui.TypeCustom {
		return
	}
	var said struct {
		Name  string               `json:"name"`
		Value *threads.Description `json:"value"`
	}
	if json.Unmarshal(record, &said) != nil || said.Name != "holdfast.described" || said.Value.Title == nil {
		return
	}
	if one := t.titles[*said.Value.Title]; one != nil {
		one.stored = true
	}
}

// optional reports whether a watcher may not be shown a record: what it refers to may be gone.
func optional(data []byte) bool {
	switch agui.TypeOf(data) {
	case agui.TypeMessagesSnapshot, agui.TypeStateSnapshot, agui.TypeActivitySnapshot:
		return true
	}
	return false
}

// deltaOf returns the text of a delta.
func deltaOf(ev agui.Event) (string, bool) {
	switch e := ev.(type) {
	case agui.TextMessageContent:
		return e.Delta, true
	case agui.ToolCallArgs:
		return e.Delta, true
	}
	return "", false
}

// partOf returns what a delta belongs to; empty if the event is none.
func partOf(ev agui.Event) string {
	switch e := ev.(type) {
	case agui.TextMessageContent:
		return "message " + e.MessageID
	case agui.ToolCallArgs:
		return "call " + e.ToolCallID
	}
	return ""
}

// textUpTo returns what a client may be shown by the delta ev, with which the records end: what it
// says or, in a log that was archived, all that its message has said after the record number after.
func textUpTo(records []store.Record, after uint64, ev agui.Event) []string {
	var texts []string
	text := ""
	for i := len(records) - 1; i >= 0 && uint64(i) >= after; i-- {
		one, err := agui.DecodeEvent(records[i].Data)
		if err != nil || partOf(one) != partOf(ev) {
			continue
		}
		delta, _ := deltaOf(one)
		text = delta + text
		if len(texts) == 0 {
			texts = append(texts, text)
		}
	}
	return append(texts, text)
}

// copyOf returns a commit as it is now: its bytes may be used again when nobody waits for the
// answer any more.
func copyOf(c *store.Commit) *store.Commit {
	kept := *c
	kept.Records, kept.Messages = slices.Clone(c.Records), slices.Clone(c.Messages)
	for i := range kept.Records {
		kept.Records[i] = bytes.Clone(kept.Records[i])
	}
	for i := range kept.Messages {
		kept.Messages[i].Data = bytes.Clone(kept.Messages[i].Data)
	}
	return &kept
}

// alice is the user.
var alice = holdfast.Principal{Tenant: "acme", User: "alice"}

// keyOf returns the key of a thread.
func keyOf(thread string) store.ThreadKey {
	return store.ThreadKey{Tenant: alice.Tenant, Thread: thread}
}
