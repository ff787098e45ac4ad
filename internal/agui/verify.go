package agui

// The verifier: checks a finished stream from a consumer's side. It shares the table of
// events with the sequence machine, but no code, so that tests can hold one against the other.

import (
	"fmt"
	"iter"
)

// Verify checks a whole stream as a consumer does, with its own state: every event must
// be allowed where it is, and the stream must end with the end of a run. It is for
// tests; producers use a [Sequencer].
func Verify(events iter.Seq[Event]) error {
	v := verifier{}
	n := 0
	for ev := range events {
		n++
		if err := v.take(ev); err != nil {
			return fmt.Errorf("event %d, %s: %w", n, EventType(ev), err)
		}
	}
	if n == 0 || v.run != nil {
		return fmt.Errorf("the stream ends after %d events without the run's end", n)
	}
	return nil
}

type verifier struct {
	run    *RunStarted
	thread string
	any    bool
	open   map[string]Type   // "lane/id"
	owners map[string]string // "lane/id", including closed items
	state  bool
	chunk  map[lane]string
	chunks string // owner of the open chunk item
}

func (v *verifier) take(ev Event) error {
	defer func() { v.any = true }()
	switch e := ev.(type) {
	case RunStarted:
		if v.run != nil {
			return fmt.Errorf("a run is under way")
		}
		if v.thread != "" && v.thread != e.ThreadID {
			return fmt.Errorf("the thread changed")
		}
		v.run, v.thread = &e, e.ThreadID
		v.open, v.owners, v.chunk = map[string]Type{}, map[string]string{}, map[lane]string{}
		return nil
	case RunError:
		if v.run == nil && v.any {
			return fmt.Errorf("nothing is under way")
		}
		v.run = nil
		return nil
	}
	if v.run == nil {
		return fmt.Errorf("no run is under way")
	}
	if e, ok := ev.(RunFinished); ok {
		if e.RunID != v.run.RunID || e.ThreadID != v.run.ThreadID {
			return fmt.Errorf("it names another run")
		}
		for id := range v.open {
			return fmt.Errorf("%s is open", id)
		}
		if err := verifyOutcome(e.Outcome); err != nil {
			return err
		}
		v.run = nil
		return nil
	}
	return v.inside(ev)
}

func (v *verifier) inside(ev Event) error {
	k := kindOf(ev)
	if !k.aside && k.phase != chunk {
		clear(v.chunk)
	}
	id, agent := k.text(ev, k.id), k.text(ev, "subagentRunId")
	item := string(k.lane) + "/" + id
	if k.lane == laneStep {
		item = "step/" + agent + "/" + id
	}
	if err := v.owned(k, id, agent); err != nil {
		return err
	}
	switch k.phase {
	case opens:
		return v.begin(item, k.Type)
	case continues:
		return v.need(item)
	case closes:
		return v.finish(item)
	case chunk:
		return v.chunked(k, id, agent, k.lane != laneCall || k.text(ev, "toolCallName") != "")
	}
	switch e := ev.(type) {
	case StateSnapshot, StateRef:
		v.state = true
	case StateDelta, StateDeltaRef:
		if !v.state {
			return fmt.Errorf("there is no state to change")
		}
	case ToolCallResult:
		return v.absent("call/" + e.ToolCallID)
	}
	return nil
}

// owned checks that every event about an item has the subagent that named the item
// first. An event without a subagent agrees with any. A span of reasoning and its message
// are one item.
func (v *verifier) owned(k *kind, id, agent string) error {
	item := string(k.lane) + "/" + id
	switch k.lane {
	case laneSpan:
		item = "reasoning/" + id
	case laneText, laneCall, laneReasoning:
	default:
		return nil
	}
	if k.phase == chunk && id == "" {
		return nil
	}
	owner, seen := v.owners[item]
	if seen && agent != "" && agent != owner {
		return fmt.Errorf("%s belongs to another subagent", item)
	}
	if !seen {
		v.owners[item] = agent
	}
	return nil
}

// verifyOutcome also checks what the drafts after 1.0 add: no two interrupts with the
// same id.
func verifyOutcome(o *Outcome) error {
	if o == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, i := range o.Interrupts {
		if seen[i.ID] {
			return fmt.Errorf("two interrupts have one id")
		}
		seen[i.ID] = true
	}
	switch {
	case o.Type == OutcomeInterrupt && len(seen) == 0:
		return fmt.Errorf("an interrupt asks nothing")
	case o.Type != OutcomeInterrupt && o.Type != OutcomeSuccess && o.Type != OutcomeCancelled:
		return fmt.Errorf("the outcome is unknown")
	}
	return nil
}

func (v *verifier) chunked(k *kind, id, agent string, named bool) error {
	if id == "" {
		if v.chunk[k.lane] == "" || agent != v.chunks {
			return fmt.Errorf("the first chunk has no id")
		}
		return nil
	}
	item := string(k.lane) + "/" + id
	if _, open := v.open[item]; open {
		return fmt.Errorf("%s is open in the other form", item)
	}
	if v.chunk[k.lane] != id && !named {
		return fmt.Errorf("the first chunk has no name")
	}
	clear(v.chunk)
	v.chunk[k.lane], v.chunks = id, agent
	return nil
}

func (v *verifier) begin(id string, t Type) error {
	if err := v.absent(id); err != nil {
		return err
	}
	v.open[id] = t
	return nil
}

func (v *verifier) absent(id string) error {
	if _, open := v.open[id]; open {
		return fmt.Errorf("%s is open", id)
	}
	return nil
}

func (v *verifier) need(id string) error {
	if _, open := v.open[id]; !open {
		return fmt.Errorf("%s is not open", id)
	}
	return nil
}

func (v *verifier) finish(id string) error {
	err := v.need(id)
	delete(v.open, id)
	return err
}
