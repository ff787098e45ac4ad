package aisdk

// Encoding a stream: the events of a thread's log, as watchers of AG-UI are sent them, become the
// chunks of a UI message stream. Most events are pieces of a text, whose chunk is made of the
// event's own bytes.

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Options are how a client wants to see an answer.
type Options struct {
	Version Version
	// Post is what the stream answers; nil for a client that comes to an answer that is already
	// being written, and is shown all of it.
	Post *Post
	// After is the id of the last record that the client has; empty if it has none. Nothing up
	// to there is sent again.
	After string
	// Rest means that the stream has only the newest run, and the client the runs before.
	Rest bool
}

// Encode returns a reply as a UI message stream.
func Encode(reply *agui.Reply, o Options) *agui.Reply {
	out := *reply
	out.Notice = func(e *holdfast.Error) []agui.Frame {
		var c chunks
		c.with("error", member{"errorText", quoted(agui.PersonText(e))})
		c.recorded("")
		return append(c.take(), done)
	}
	out.Frames = chunksOf(reply, o)
	return &out
}

// done ends a stream.
var done = agui.Frame{Data: []byte("[DONE]")}

// chunksOf returns the chunks of a reply's events.
func chunksOf(reply *agui.Reply, o Options) iter.Seq2[[]agui.Frame, error] {
	return func(yield func([]agui.Frame, error) bool) {
		e := newEncoder(o, reply.RunID)
		for frames, err := range reply.Frames {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(frames) == 0 { // a keep-alive
				if !yield(nil, nil) {
					return
				}
				continue
			}
			e.out.reset()
			for i := 0; i < len(frames) && !e.ended; i++ {
				if err := e.frame(&frames[i]); err != nil {
					yield(nil, err)
					return
				}
			}
			made := e.out.take()
			if e.ended {
				made = append(made, done)
			}
			if len(made) > 0 && !yield(made, nil) || e.ended {
				return
			}
		}
	}
}

// encoder is what has to be known of a stream to go on with it.
type encoder struct {
	Options
	out chunks
	run string
	// id is that of the UI message.
	id      string
	started bool
	ended   bool
	step
	open []*item
	// goesOn is the item that was continued last.
	goesOn *item
	// shownCalls are the calls that the client shows, by id.
	shownCalls map[string]*call
	// replayed are the calls that are shown from a snapshot, if anything is.
	replayed []string
	replays  bool
	// state is the shared state that was shown last, and files are those that were shown.
	state []byte
	files map[string]bool
	// activities are the contents of those that may change, by id.
	activities map[string]json.RawMessage
	// document is the shared state, also where it is not shown.
	document []byte
}

// item is a text or reasoning that is open.
type item struct {
	id        []byte // as JSON
	name      string // the same, as text
	reasoning bool
	// begun means that it is shown: event is how its pieces begin in the log, and chunk how they
	// begin here, up to their text.
	begun        bool
	event, chunk []byte
	// again means that it is shown from a snapshot: if it is still being written, it is opened
	// once more.
	again bool
}

// call is a call that the client shows.
type call struct {
	name  string
	input []byte
	ended bool
	again bool // as an item's
}

func newEncoder(o Options, run string) *encoder {
	e := &encoder{
		Options:    o,
		run:        run,
		shownCalls: map[string]*call{},
		files:      map[string]bool{},
		activities: map[string]json.RawMessage{},
	}
	if o.Post == nil {
		return e
	}
	e.id = o.Post.Continues
	for id := range o.Post.Calls {
		e.shownCalls[id] = &call{ended: true}
	}
	if e.id == "" && o.Post.last != "" {
		e.id = answerID(o.Post.last)
	}
	return e
}

// frame adds the chunks of an event.
func (e *encoder) frame(f *agui.Frame) error {
	if e.goesOn != nil && !e.replays && e.After == "" && e.out.goOn(e.goesOn, f) {
		return nil
	}
	if e.replays && f.ID != "" {
		e.caughtUp()
	}
	if err := e.event(f); err != nil {
		return err
	}
	if e.After != "" {
		e.catchUp(f.ID)
		return nil
	}
	e.out.recorded(f.ID)
	return nil
}

// catchUp leaves out what the client has.
func (e *encoder) catchUp(id string) {
	e.out.drop()
	switch {
	case id == e.After:
		e.After = ""
	case number(id) > number(e.After) || e.ended:
		// The thread does not have that record any more, so nobody knows what the client shows.
		e.After, e.ended = "", true
		e.out.with("error", member{"errorText", quoted(textLost)})
		e.out.recorded("")
	}
}

// textLost is for the person in front of the page.
const textLost = "The connection was interrupted, and a part of the answer was lost. Reload the " +
	"page to see what is kept."

// number returns the number of a record; 0 if there is none.
func number(id string) uint64 {
	digits, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseUint(digits, 10, 64) // what is none of ours is before all
	return n
}

// The beginnings of the events of which there are many.
const (
	textHead      = `{"type":"` + string(agui.TypeTextMessageContent) + `","messageId":`
	reasoningHead = `{"type":"` + string(agui.TypeReasoningMessageContent) + `","messageId":`
	argsHead      = `{"type":"` + string(agui.TypeToolCallArgs) + `","toolCallId":`
	snapshotHead  = `{"type":"` + string(agui.TypeMessagesSnapshot) + `"`
	deltaMember   = `,"delta":`

	textDelta      = `{"type":"text-delta","id":`
	reasoningDelta = `{"type":"reasoning-delta","id":`
)

func (e *encoder) event(f *agui.Frame) error {
	data := f.Data
	switch {
	case f.Pieces != nil:
		return e.large(f)
	case bytes.HasPrefix(data, []byte(textHead)):
		if id, delta := pieceOf(data[len(textHead):]); id != nil {
			e.said(id, delta, false)
			return nil
		}
	case bytes.HasPrefix(data, []byte(reasoningHead)):
		if id, delta := pieceOf(data[len(reasoningHead):]); id != nil {
			e.said(id, delta, true)
			return nil
		}
	case bytes.HasPrefix(data, []byte(argsHead)):
		if id, delta := pieceOf(data[len(argsHead):]); id != nil {
			e.args(id, delta)
			return nil
		}
	}
	switch agui.TypeOf(data) {
	case agui.TypeMessagesSnapshot:
		return e.whole(f)
	case agui.TypeRaw, agui.TypeStepStarted, agui.TypeStepFinished, agui.TypeReasoningStart, agui.TypeReasoningEnd,
		agui.TypeReasoningEncryptedValue:
		return nil
	}
	ev, err := agui.DecodeEvent(data)
	if err != nil {
		return nil // an event of a newer server, which has no chunk
	}
	e.apply(ev)
	return nil
}

// pieceOf returns the id and the text of a piece, both as JSON; nil if the event is written in
// another way than the server does it.
func pieceOf(rest []byte) (id, delta []byte) {
	end := stringEnd(rest)
	if end < 0 || !bytes.HasPrefix(rest[end:], []byte(deltaMember)) {
		return nil, nil
	}
	from := end + len(deltaMember)
	to := stringEnd(rest[from:])
	if to < 0 {
		return nil, nil
	}
	return rest[:end], rest[from : from+to]
}

// large is for an event that is made while it is sent. A snapshot may be megabytes, so it is read
// message by message, and only if it is needed.
func (e *encoder) large(f *agui.Frame) error {
	var data []byte
	var shot *snapshot
	for piece, err := range f.Pieces {
		switch {
		case err != nil:
			return err
		case shot != nil:
			if err := shot.take(piece); err != nil {
				return err
			}
		case len(data) == 0 && bytes.HasPrefix(piece, []byte(snapshotHead)):
			if !e.wants(f.ID) {
				return nil
			}
			shot = e.newSnapshot()
		default:
			data = append(data, piece...)
		}
	}
	if shot != nil {
		e.snapshot(shot)
		return nil
	}
	return e.event(&agui.Frame{ID: f.ID, Data: data})
}

// apply adds the chunks of an event that is not one of the many.
func (e *encoder) apply(ev agui.Event) {
	switch ev := ev.(type) {
	case agui.TextMessageStart:
		if ev.Role == "" || ev.Role == string(holdfast.RoleAssistant) {
			e.opened(ev.MessageID, false)
		}
	case agui.ReasoningMessageStart:
		e.opened(ev.MessageID, true)
	case agui.TextMessageContent:
		e.said(quoted(ev.MessageID), quoted(ev.Delta), false)
	case agui.ReasoningMessageContent:
		e.said(quoted(ev.MessageID), quoted(ev.Delta), true)
	case agui.TextMessageEnd:
		e.closed(ev.MessageID, false)
	case agui.ReasoningMessageEnd:
		e.closed(ev.MessageID, true)
	case agui.ToolCallStart:
		e.called(ev)
	case agui.ToolCallArgs:
		e.args(quoted(ev.ToolCallID), quoted(ev.Delta))
	case agui.ToolCallEnd:
		e.made(ev.ToolCallID)
	case agui.ToolCallResult:
		_, mark := thread.FactsOf(&ev)
		e.result(ev.ToolCallID, ev.Content, mark)
	case agui.StateSnapshot:
		e.shared(ev.Snapshot)
	case agui.StateDelta:
		if changed, err := jsonpatch.Apply(e.document, ev.Delta); err == nil {
			e.shared(changed)
		}
	case agui.ActivitySnapshot:
		e.activity(ev.MessageID, ev.ActivityType, ev.Content)
	case agui.ActivityDelta:
		e.activityChanged(ev)
	case agui.Custom:
		e.out.with("data-custom", member{"data", encoded(struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		}{ev.Name, ev.Value})}, member{"transient", ifTrue(true)})
	case agui.RunFinished:
		e.finished(ev)
	case agui.RunError:
		e.start()
		e.caughtUp()
		e.closeAll()
		e.out.with("error", member{"errorText", quoted(ev.Message)})
		e.ended = true
	}
}

// start begins the UI message.
func (e *encoder) start() {
	if e.started {
		return
	}
	e.started = true
	var id []byte
	if e.id != "" {
		id = quoted(e.id)
	}
	e.out.with("start", member{"messageId", id}, member{"messageMetadata", e.metadata(nil)})
}

// metadata says whose words these are, and what they have cost.
func (e *encoder) metadata(usage []holdfast.Usage) []byte {
	m := struct {
		Holdfast struct {
			RunID string `json:"runId"`
		} `json:"holdfast"`
		Usage *usageOf `json:"usage,omitempty"`
	}{}
	m.Holdfast.RunID = e.run
	m.Usage = sumOf(usage)
	return encoded(m)
}

// within begins a step if there is none for the message. A model's text and calls are one
// message; its reasoning comes in messages of its own.
func (e *encoder) within(message string, reasoning bool) {
	e.start()
	if e.begun && (e.sealed || !reasoning && e.message != "" && e.message != message) {
		e.endStep()
	}
	if !e.begun {
		e.step = step{begun: true}
		e.out.plain("start-step")
	}
	if !reasoning {
		e.message = message
	}
	if n := len(e.shown); n == 0 || e.shown[n-1] != message {
		e.shown = append(e.shown, message)
	}
}

func (e *encoder) endStep() {
	if e.begun {
		e.closeAll()
		e.out.plain("finish-step")
		e.step = step{}
	}
}

// finished ends the stream of a run.
func (e *encoder) finished(ev agui.RunFinished) {
	e.start()
	e.caughtUp()
	e.closeAll()
	reason := "stop"
	if o := ev.Outcome; o != nil {
		if len(o.PendingToolCallIDs) > 0 || len(o.Interrupts) > 0 {
			reason = "tool-calls"
		}
		for i := range o.Interrupts {
			e.asked(&o.Interrupts[i])
		}
		if o.Type == agui.OutcomeCancelled {
			e.out.with("message-metadata", member{"messageMetadata", e.metadata(ev.Usage)})
			e.out.plain("abort")
			e.ended = true
			return
		}
	}
	e.endStep()
	e.out.with("finish", member{"finishReason", quoted(reason)}, member{"messageMetadata", e.metadata(ev.Usage)})
	e.ended = true
}

// asked shows a question. One about a call is an approval, if the client knows them and shows
// the call.
func (e *encoder) asked(q *agui.Interrupt) {
	if agui.AsksApproval(q.Reason, q.ToolCallID, q.ResponseSchema) && e.Version > V5 {
		if e.shownCalls[q.ToolCallID] == nil && !e.Rest {
			return
		}
		var reason []byte
		if q.Message != "" {
			reason = quoted(q.Message)
		}
		e.out.with("tool-approval-request", member{"approvalId", quoted(q.ID)},
			member{"toolCallId", quoted(q.ToolCallID)}, member{"reason", reason})
		return
	}
	e.out.with("data-question", member{"id", quoted(q.ID)}, member{"data", questionOf(q)})
}
