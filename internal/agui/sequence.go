package agui

// The sequence machine, part one: which event may come when, what an event closes, and what is
// open. Its memory of ids is in sequence_memory.go.

import (
	"fmt"
	"slices"
)

// Sequencer is the producer's side of AG-UI's ordering rules (AG-UI spec, ordering):
// send only the events that it accepts, and every prefix of the stream is legal. The
// zero value is the start of a stream. It is stricter than the spec where that costs
// a producer nothing: exactly one terminal event per run, and no snapshot while a
// message is open.
type Sequencer struct {
	thread, run string
	begun       bool // something was sent
	started     bool // a run has started and not ended
	hasState    bool
	open        []item
	chunks      [3]string       // the open chunk item by lane: text, tool, reasoning
	chunk       item            // the same item, to open it again
	known       map[key]memory  // what was said about each id, even if it was closed since
	subagents   map[string]bool // announced in this run
}

// item is something open that must be closed.
type item struct {
	kind  Type // the type that opened it
	id    string
	agent string // subagent it is attributed to
	role  string // what must not change: its role or its tool's name
	start Event
}

// SequenceError says why an event is not allowed now.
type SequenceError struct {
	Type   Type
	Reason string
}

// Error names the event and the rule.
func (e *SequenceError) Error() string {
	return fmt.Sprintf("%s may not come now: %s", e.Type, e.Reason)
}

func refuse(t Type, format string, args ...any) error {
	return &SequenceError{Type: t, Reason: fmt.Sprintf(format, args...)}
}

// Idle reports whether nothing is open.
func (q *Sequencer) Idle() bool { return len(q.open) == 0 }

// Running reports whether a run has started and not ended.
func (q *Sequencer) Running() bool { return q.started }

func (q *Sequencer) find(kind Type, id string) int {
	return slices.IndexFunc(q.open, func(i item) bool { return i.kind == kind && i.id == id })
}

// opener returns the type that opens what the given type continues or closes.
func opener(t Type) Type {
	switch t {
	case TypeTextMessageContent, TypeTextMessageEnd:
		return TypeTextMessageStart
	case TypeToolCallArgs, TypeToolCallEnd:
		return TypeToolCallStart
	case TypeReasoningMessageContent, TypeReasoningMessageEnd:
		return TypeReasoningMessageStart
	case TypeReasoningEnd:
		return TypeReasoningStart
	case TypeStepFinished:
		return TypeStepStarted
	}
	return t
}

// Delta returns an error unless content of this open item is allowed now. It is Next
// for the hot path: it does not allocate.
func (q *Sequencer) Delta(kind Type, id string) error {
	for i := range q.open {
		if q.open[i].id == id && q.open[i].agent == "" && q.open[i].kind == opener(kind) {
			q.endChunks()
			return nil
		}
	}
	return refuse(kind, "its item %q is not open", id)
}

// Next accepts ev if it is allowed now, and returns what must be sent before it. A
// refused event changes nothing.
func (q *Sequencer) Next(ev Event) (before []Event, err error) {
	t := ev.EventType()
	switch e := ev.(type) {
	case RunStarted:
		return nil, q.runStarted(e)
	case RunError:
		if q.begun && !q.started {
			return nil, refuse(t, "no run is under way")
		}
		q.begun = true
		q.reset()
		return nil, nil
	}
	if !q.started {
		return nil, refuse(t, "no run is under way")
	}
	if e, ok := ev.(RunFinished); ok {
		return q.runFinished(e)
	}
	return q.inRun(t, ev)
}

// reset ends the run.
func (q *Sequencer) reset() {
	q.started, q.open, q.subagents = false, nil, nil
	q.endChunks()
}

func (q *Sequencer) endChunks() {
	q.chunks, q.chunk = [3]string{}, item{}
}

func (q *Sequencer) runStarted(e RunStarted) error {
	switch {
	case q.started:
		return refuse(TypeRunStarted, "run %q is under way", q.run)
	case e.ThreadID == "" || e.RunID == "":
		return refuse(TypeRunStarted, "it has no thread or run id")
	case q.thread != "" && q.thread != e.ThreadID:
		return refuse(TypeRunStarted, "the stream is of thread %q", q.thread)
	}
	q.thread, q.run, q.begun, q.started = e.ThreadID, e.RunID, true, true
	return nil
}

func (q *Sequencer) runFinished(e RunFinished) ([]Event, error) {
	if e.ThreadID != q.thread || e.RunID != q.run {
		return nil, refuse(TypeRunFinished, "run %q of thread %q is under way", q.run, q.thread)
	}
	if e.Outcome != nil {
		if err := e.Outcome.check(); err != nil {
			return nil, err
		}
	}
	before := q.Close()
	q.reset()
	return before, nil
}

func (c *Outcome) check() error {
	switch c.Type {
	case OutcomeSuccess, OutcomeCancelled:
		return nil
	case OutcomeInterrupt:
		seen := map[string]bool{}
		for _, i := range c.Interrupts {
			if i.ID == "" || seen[i.ID] {
				return refuse(TypeRunFinished, "an interrupt has no id of its own")
			}
			seen[i.ID] = true
		}
		if len(seen) > 0 {
			return nil
		}
	}
	return refuse(TypeRunFinished, "its outcome is not one")
}

func (q *Sequencer) inRun(t Type, ev Event) ([]Event, error) {
	switch t {
	case TypeTextMessageChunk, TypeToolCallChunk, TypeReasoningMessageChunk:
		return nil, q.chunked(ev)
	case TypeRaw, TypeActivitySnapshot, TypeActivityDelta, TypeReasoningEncryptedValue:
		return nil, q.aside(ev)
	case TypeSubagentStarted:
		return nil, q.subagentStarted(ev)
	case TypeSubagentFinished, TypeSubagentError:
		return q.subagentEnded(ev)
	}
	if err := q.ordered(t, ev); err != nil {
		return nil, err
	}
	q.endChunks()
	return nil, nil
}

// aside handles events that may come anywhere in a run and close nothing.
func (q *Sequencer) aside(ev Event) error {
	switch e := ev.(type) {
	case ActivitySnapshot:
		return q.activity(e)
	case ActivityDelta:
		if err := needIDs(TypeActivityDelta, e.MessageID, e.ActivityType); err != nil {
			return err
		}
		if m, known := q.known[key{id: e.MessageID}]; known && m.kind != "" &&
			(m.kind != TypeActivitySnapshot || m.agent != e.SubagentRunID) {
			return refuse(TypeActivityDelta, "%q is not an activity of this subagent", e.MessageID)
		}
		return checkPatch(TypeActivityDelta, e.Patch)
	case ReasoningEncryptedValue:
		if e.Subtype != "message" && e.Subtype != "tool-call" {
			return refuse(TypeReasoningEncryptedValue, "its subtype is unknown")
		}
		spaces := []byte{0, spaceSpan}
		if e.Subtype == "tool-call" {
			spaces = []byte{spaceCall}
		}
		for _, space := range spaces {
			if m, known := q.known[key{space, e.EntityID}]; known && m.agent != e.SubagentRunID {
				return refuse(TypeReasoningEncryptedValue, "%q belongs to another subagent", e.EntityID)
			}
		}
		return needIDs(TypeReasoningEncryptedValue, e.EntityID)
	}
	return nil
}

func needIDs(t Type, ids ...string) error {
	if slices.Contains(ids, "") {
		return refuse(t, "an id or a name is empty")
	}
	return nil
}

// ordered handles all other events.
func (q *Sequencer) ordered(t Type, ev Event) error {
	id, agent, role := identity(ev)
	switch t {
	case TypeTextMessageStart, TypeToolCallStart, TypeReasoningMessageStart, TypeReasoningStart, TypeStepStarted:
		return q.start(t, ev, id, agent, role)
	case TypeTextMessageContent, TypeToolCallArgs, TypeReasoningMessageContent:
		return q.current(t, id, agent, false)
	case TypeTextMessageEnd, TypeToolCallEnd, TypeReasoningMessageEnd, TypeReasoningEnd, TypeStepFinished:
		return q.current(t, id, agent, true)
	}
	switch e := ev.(type) {
	case ToolCallResult:
		if q.find(TypeToolCallStart, e.ToolCallID) >= 0 || q.chunks[1] == e.ToolCallID {
			return refuse(t, "call %q is still open", e.ToolCallID)
		}
		return q.result(e)
	case Custom:
		return needIDs(t, e.Name)
	case StateDelta:
		if !q.hasState {
			return refuse(t, "there is no snapshot to apply it to")
		}
		return checkPatch(t, e.Delta)
	}
	switch t {
	case TypeStateSnapshot:
		q.hasState = true
	case TypeMessagesSnapshot:
		if len(q.open) > 0 {
			return refuse(t, "%s %q is open, and would lose what follows", q.open[0].kind, q.open[0].id)
		}
		if e, ok := ev.(MessagesSnapshot); ok {
			return q.restate(e.Messages)
		}
		q.forget()
	}
	return nil
}

// identity returns an event's item, its subagent, and what must not change when the
// item is opened again.
func identity(ev Event) (id, agent, role string) {
	switch e := ev.(type) {
	case TextMessageStart:
		return e.MessageID, e.SubagentRunID, e.Role
	case TextMessageContent:
		return e.MessageID, e.SubagentRunID, ""
	case TextMessageEnd:
		return e.MessageID, e.SubagentRunID, ""
	case ToolCallStart:
		return e.ToolCallID, e.SubagentRunID, e.ToolCallName
	case ToolCallArgs:
		return e.ToolCallID, e.SubagentRunID, ""
	case ToolCallEnd:
		return e.ToolCallID, e.SubagentRunID, ""
	case ReasoningStart:
		return e.MessageID, e.SubagentRunID, ""
	case ReasoningEnd:
		return e.MessageID, e.SubagentRunID, ""
	case ReasoningMessageStart:
		return e.MessageID, e.SubagentRunID, ""
	case ReasoningMessageContent:
		return e.MessageID, e.SubagentRunID, ""
	case ReasoningMessageEnd:
		return e.MessageID, e.SubagentRunID, ""
	case StepStarted:
		return e.StepName, e.SubagentRunID, ""
	case StepFinished:
		return e.StepName, e.SubagentRunID, ""
	}
	return "", "", ""
}

func (q *Sequencer) start(t Type, ev Event, id, agent, role string) error {
	switch {
	case id == "":
		return refuse(t, "it has no id")
	case q.find(t, id) >= 0:
		return refuse(t, "%q is open", id)
	case slices.Contains(q.chunks[:], id):
		return refuse(t, "%q is open in chunk form", id)
	case t == TypeToolCallStart && role == "":
		return refuse(t, "it has no tool name")
	case t == TypeTextMessageStart && !isTextRole(role):
		return refuse(t, "a text message has no role %q", role)
	case agent != "" && q.subagents != nil && !q.subagents[agent] && len(q.subagents) > 0:
		return refuse(t, "subagent %q was not announced", agent)
	}
	if err := q.remember(t, ev, id, agent, role); err != nil {
		return err
	}
	q.open = append(q.open, item{
		kind:  t,
		id:    id,
		agent: agent,
		role:  role,
		start: ev,
	})
	return nil
}

func (q *Sequencer) current(t Type, id, agent string, ends bool) error {
	i := q.find(opener(t), id)
	if i < 0 {
		return refuse(t, "its item %q is not open", id)
	}
	if q.open[i].agent != agent {
		return refuse(t, "its item %q belongs to another subagent", id)
	}
	if ends {
		q.open = slices.Delete(q.open, i, i+1)
	}
	return nil
}

// Close closes everything that is open, the newest first, and returns the events that
// do so.
func (q *Sequencer) Close() []Event {
	q.endChunks()
	var out []Event
	for i := len(q.open) - 1; i >= 0; i-- {
		out = append(out, closer(q.open[i]))
	}
	q.open = nil
	return out
}

func closer(i item) Event {
	switch i.kind {
	case TypeTextMessageStart:
		return TextMessageEnd{MessageID: i.id, SubagentRunID: i.agent}
	case TypeToolCallStart:
		return ToolCallEnd{ToolCallID: i.id, SubagentRunID: i.agent}
	case TypeReasoningMessageStart:
		return ReasoningMessageEnd{MessageID: i.id, SubagentRunID: i.agent}
	case TypeReasoningStart:
		return ReasoningEnd{MessageID: i.id, SubagentRunID: i.agent}
	case TypeStepStarted:
		return StepFinished{StepName: i.id, SubagentRunID: i.agent}
	}
	return SubagentError{SubagentRunID: i.id, Message: "The run ended before this subagent did."}
}

// Reopen returns the events that open for another reader what is open here. Opening a
// known id appends to it, so that reader continues where it was.
func (q *Sequencer) Reopen() []Event {
	out := make([]Event, 0, len(q.open)+1)
	for i := range q.open {
		out = append(out, q.open[i].start)
	}
	if q.chunk.start != nil {
		out = append(out, q.chunk.start)
	}
	return out
}
