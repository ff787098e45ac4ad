package agui

// The sequence machine, part one: which event may come when, what an event closes,
// what is open, and the compact chunk form. Its memory of ids is in sequence_memory.go.

import "slices"

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
	chunk       item // the open item in chunk form, to open it again
	known       memories
	subagents   map[string]bool // announced in this run
}

// item is something open that must be closed.
type item struct {
	lane lane
	about
	start Event
}

// Idle reports whether nothing is open.
func (q *Sequencer) Idle() bool { return len(q.open) == 0 }

// Running reports whether a run has started and not ended.
func (q *Sequencer) Running() bool { return q.started }

func (q *Sequencer) find(l lane, id string) int {
	return slices.IndexFunc(q.open, func(i item) bool { return i.lane == l && i.id == id })
}

// Delta returns an error unless content of this open item is allowed now. It is Next
// for the hot path: it does not allocate.
func (q *Sequencer) Delta(t Type, id string) error {
	l := byType[t].lane
	for i := range q.open {
		if q.open[i].id == id && q.open[i].agent == "" && q.open[i].lane == l {
			q.endChunks()
			return nil
		}
	}
	return refuse(t, "its item %q is not open", id)
}

// Next accepts ev if it is allowed now, and returns what must be sent before it. A
// refused event changes nothing.
func (q *Sequencer) Next(ev Event) (before []Event, err error) {
	k := kindOf(ev)
	switch e := ev.(type) {
	case RunStarted:
		return nil, q.runStarted(e)
	case RunError:
		if q.begun && !q.started {
			return nil, refuse(k.Type, "no run is under way")
		}
		q.begun = true
		q.reset()
		return nil, nil
	}
	if !q.started {
		return nil, refuse(k.Type, "no run is under way")
	}
	if e, ok := ev.(RunFinished); ok {
		return q.runFinished(e)
	}
	return q.inRun(k, ev)
}

// reset ends the run.
func (q *Sequencer) reset() {
	q.started, q.open, q.subagents = false, nil, nil
	q.endChunks()
}

func (q *Sequencer) endChunks() { q.chunk = item{} }

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
	if q.known == nil {
		q.known = memories{}
	}
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

func (q *Sequencer) inRun(k *kind, ev Event) ([]Event, error) {
	switch {
	case k.phase == chunk:
		return nil, q.chunked(k, ev)
	case k.lane == laneSubagent && k.phase == opens:
		return nil, q.subagentStarted(ev)
	case k.lane == laneSubagent:
		return q.subagentEnded(k, ev)
	case k.aside:
		return nil, q.aside(ev)
	}
	if err := q.ordered(k, ev); err != nil {
		return nil, err
	}
	q.endChunks()
	return nil, nil
}

// aside handles events that may come anywhere in a run and close nothing.
func (q *Sequencer) aside(ev Event) error {
	switch e := ev.(type) {
	case ActivitySnapshot:
		return q.known.activity(e)
	case ActivityDelta:
		return q.known.activityDelta(e)
	case ReasoningEncryptedValue:
		return q.known.secret(e)
	}
	return nil
}

// ordered handles all other events.
func (q *Sequencer) ordered(k *kind, ev Event) error {
	switch k.phase {
	case opens:
		return q.start(k, ev)
	case continues, closes:
		return q.current(k, ev)
	}
	switch e := ev.(type) {
	case ToolCallResult:
		if q.find(laneCall, e.ToolCallID) >= 0 || q.chunk.lane == laneCall && q.chunk.id == e.ToolCallID {
			return refuse(k.Type, "call %q is still open", e.ToolCallID)
		}
		return q.known.result(e)
	case Custom:
		return needIDs(k.Type, e.Name)
	case StateDelta:
		if !q.hasState {
			return refuse(k.Type, "there is no snapshot to apply it to")
		}
		return checkPatch(k.Type, e.Delta)
	case StateDeltaRef:
		if !q.hasState {
			return refuse(k.Type, "there is no snapshot to apply it to")
		}
		return nil
	}
	switch k.Type {
	case TypeStateSnapshot:
		q.hasState = true
	case TypeMessagesSnapshot:
		// A step has nothing that a snapshot could take away.
		if i := slices.IndexFunc(q.open, func(i item) bool { return i.lane != laneStep }); i >= 0 {
			first := q.open[i]
			return refuse(k.Type, "%s %q is open, and would lose what follows", EventType(first.start), first.id)
		}
		if e, ok := ev.(MessagesSnapshot); ok {
			return q.known.restate(e.Messages)
		}
		q.known.forget()
	}
	return nil
}

// HasState reports whether the stream has shown a state, which a STATE_DELTA can change.
func (q *Sequencer) HasState() bool { return q.hasState }

func (q *Sequencer) start(k *kind, ev Event) error {
	a := k.about(ev)
	switch {
	case a.id == "":
		return refuse(k.Type, "it has no id")
	case q.find(k.lane, a.id) >= 0:
		return refuse(k.Type, "%q is open", a.id)
	case q.chunk.id == a.id:
		return refuse(k.Type, "%q is open in chunk form", a.id)
	case k.lane == laneCall && a.role == "":
		return refuse(k.Type, "it has no tool name")
	case k.lane == laneText && !isTextRole(a.role):
		return refuse(k.Type, "a text message has no role %q", a.role)
	case a.agent != "" && len(q.subagents) > 0 && !q.subagents[a.agent]:
		return refuse(k.Type, "subagent %q was not announced", a.agent)
	}
	if err := q.known.remember(k.Type, a); err != nil {
		return err
	}
	q.open = append(q.open, item{lane: k.lane, about: a, start: ev})
	return nil
}

func (q *Sequencer) current(k *kind, ev Event) error {
	a := k.about(ev)
	i := q.find(k.lane, a.id)
	if i < 0 {
		return refuse(k.Type, "its item %q is not open", a.id)
	}
	if q.open[i].agent != a.agent {
		return refuse(k.Type, "its item %q belongs to another subagent", a.id)
	}
	if k.phase == closes {
		q.open = slices.Delete(q.open, i, i+1)
	}
	return nil
}

// chunked accepts the compact form: an item's first chunk names it, and later chunks
// may repeat that name but not change it. Any other event ends the item.
func (q *Sequencer) chunked(k *kind, ev Event) error {
	a := k.about(ev)
	same := q.chunk.lane == k.lane && (a.id == "" || a.id == q.chunk.id)
	switch {
	case a.id == "" && !same:
		return refuse(k.Type, "the first chunk of an item names it")
	case q.find(k.lane, a.id) >= 0:
		return refuse(k.Type, "%q is open in START and END form", a.id)
	case same:
		return q.continues(k.Type, a)
	case k.lane == laneCall && a.role == "":
		return refuse(k.Type, "the first chunk of a call has the tool's name")
	case k.lane == laneText && !isTextRole(a.role):
		return refuse(k.Type, "a text message has no role %q", a.role)
	}
	if err := q.known.remember(k.lane.of(opens).Type, a); err != nil {
		return err
	}
	first := k.made(func(name string) string {
		if name == "delta" {
			return ""
		}
		return k.text(ev, name)
	})
	q.chunk = item{lane: k.lane, about: a, start: first}
	return nil
}

// continues accepts the next chunk of the open chunk item. Members that it repeats must agree
// with the first chunk, and it must be of the same subagent.
func (q *Sequencer) continues(t Type, a about) error {
	first := q.chunk.about
	if a.agent != first.agent || (a.role != "" && a.role != first.role) {
		return refuse(t, "%q was begun with another role, name or subagent", first.id)
	}
	if (a.name != "" && a.name != first.name) || (a.parent != "" && a.parent != first.parent) {
		return refuse(t, "%q was begun with another name or parent", first.id)
	}
	return nil
}

func (q *Sequencer) subagentStarted(ev Event) error {
	e, ok := ev.(SubagentStarted)
	switch {
	case !ok || e.SubagentRunID == "" || e.Name == "":
		return refuse(TypeSubagentStarted, "it has no id or no name")
	case q.subagents[e.SubagentRunID]:
		return refuse(TypeSubagentStarted, "%q was announced before", e.SubagentRunID)
	case e.ParentSubagentRunID != "" && q.find(laneSubagent, e.ParentSubagentRunID) < 0:
		return refuse(TypeSubagentStarted, "its parent is not active")
	}
	if q.subagents == nil {
		q.subagents = map[string]bool{}
	}
	q.subagents[e.SubagentRunID] = true
	q.open = append(q.open, item{lane: laneSubagent, about: about{id: e.SubagentRunID}, start: ev})
	return nil
}

// subagentEnded closes what the subagent left open, before the subagent ends.
func (q *Sequencer) subagentEnded(k *kind, ev Event) ([]Event, error) {
	id := k.text(ev, k.id)
	at := q.find(laneSubagent, id)
	if at < 0 {
		return nil, refuse(k.Type, "subagent %q is not active", id)
	}
	var before []Event
	for i := len(q.open) - 1; i >= 0; i-- {
		if o := q.open[i]; o.agent == id || isChild(o, id) {
			before = append(before, closer(o))
			q.open = slices.Delete(q.open, i, i+1)
		}
	}
	at = q.find(laneSubagent, id)
	q.open = slices.Delete(q.open, at, at+1)
	q.endChunks()
	return before, nil
}

func isChild(i item, parent string) bool {
	s, ok := i.start.(SubagentStarted)
	return ok && s.ParentSubagentRunID == parent
}

// Close closes everything that is open, the newest first, and returns the events that
// do so.
func (q *Sequencer) Close() []Event { return q.closeAll(func(item) bool { return true }) }

// CloseContent is Close for all but the steps, which go on.
func (q *Sequencer) CloseContent() []Event {
	return q.closeAll(func(i item) bool { return i.lane != laneStep })
}

// closeAll closes what is open and ends.
func (q *Sequencer) closeAll(ends func(item) bool) (out []Event) {
	q.endChunks()
	for i := len(q.open) - 1; i >= 0; i-- {
		if ends(q.open[i]) {
			out = append(out, closer(q.open[i]))
		}
	}
	q.open = slices.DeleteFunc(q.open, ends)
	return out
}

// Steps returns the names of the open steps, the oldest first; nil if there are none.
func (q *Sequencer) Steps() (names []string) {
	for i := range q.open {
		if q.open[i].lane == laneStep {
			names = append(names, q.open[i].id)
		}
	}
	return names
}

func closer(i item) Event {
	if i.lane == laneSubagent {
		return SubagentError{SubagentRunID: i.id, Message: "The run ended before this subagent did."}
	}
	return i.lane.of(closes).made(func(name string) string {
		switch name {
		case idMembers[i.lane]:
			return i.id
		case "subagentRunId":
			return i.agent
		}
		return ""
	})
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
