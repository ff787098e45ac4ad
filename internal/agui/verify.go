package agui

// The verifier: checks a finished stream from a consumer's side. It shares no code
// with the sequence machine, so that tests can hold one against the other.

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
			return fmt.Errorf("event %d, %s: %w", n, ev.EventType(), err)
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
	chunk  map[Type]string
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
		v.open, v.owners, v.chunk = map[string]Type{}, map[string]string{}, map[Type]string{}
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
	t := ev.EventType()
	if !closesNoChunk(t) {
		if t != TypeTextMessageChunk && t != TypeToolCallChunk && t != TypeReasoningMessageChunk {
			clear(v.chunk)
		}
	}
	if err := v.owned(ev); err != nil {
		return err
	}
	switch e := ev.(type) {
	case StateSnapshot, StateRef:
		v.state = true
	case StateDelta:
		if !v.state {
			return fmt.Errorf("there is no state to change")
		}
	case ToolCallResult:
		return v.absent("call/" + e.ToolCallID)
	case TextMessageStart:
		return v.begin("text/"+e.MessageID, t)
	case TextMessageContent:
		return v.need("text/" + e.MessageID)
	case TextMessageEnd:
		return v.finish("text/" + e.MessageID)
	case ToolCallStart:
		return v.begin("call/"+e.ToolCallID, t)
	case ToolCallArgs:
		return v.need("call/" + e.ToolCallID)
	case ToolCallEnd:
		return v.finish("call/" + e.ToolCallID)
	case ReasoningStart:
		return v.begin("span/"+e.MessageID, t)
	case ReasoningEnd:
		return v.finish("span/" + e.MessageID)
	case ReasoningMessageStart:
		return v.begin("reasoning/"+e.MessageID, t)
	case ReasoningMessageContent:
		return v.need("reasoning/" + e.MessageID)
	case ReasoningMessageEnd:
		return v.finish("reasoning/" + e.MessageID)
	case StepStarted:
		return v.begin("step/"+e.SubagentRunID+"/"+e.StepName, t)
	case StepFinished:
		return v.finish("step/" + e.SubagentRunID + "/" + e.StepName)
	case SubagentStarted:
		return v.begin("subagent/"+e.SubagentRunID, t)
	case SubagentFinished:
		return v.finish("subagent/" + e.SubagentRunID)
	case SubagentError:
		return v.finish("subagent/" + e.SubagentRunID)
	case TextMessageChunk:
		return v.chunked(t, e.MessageID, "text/", e.SubagentRunID, true)
	case ToolCallChunk:
		return v.chunked(t, e.ToolCallID, "call/", e.SubagentRunID, e.ToolCallName != "")
	case ReasoningMessageChunk:
		return v.chunked(t, e.MessageID, "reasoning/", e.SubagentRunID, true)
	}
	return nil
}

// owned checks that every event about an item has the subagent that named the item
// first. An event without a subagent agrees with any.
func (v *verifier) owned(ev Event) error {
	item, agent := "", ""
	switch e := ev.(type) {
	case TextMessageStart:
		item, agent = "text/"+e.MessageID, e.SubagentRunID
	case TextMessageContent:
		item, agent = "text/"+e.MessageID, e.SubagentRunID
	case TextMessageEnd:
		item, agent = "text/"+e.MessageID, e.SubagentRunID
	case ToolCallStart:
		item, agent = "call/"+e.ToolCallID, e.SubagentRunID
	case ToolCallArgs:
		item, agent = "call/"+e.ToolCallID, e.SubagentRunID
	case ToolCallEnd:
		item, agent = "call/"+e.ToolCallID, e.SubagentRunID
	case ReasoningStart:
		item, agent = "reasoning/"+e.MessageID, e.SubagentRunID
	case ReasoningMessageStart:
		item, agent = "reasoning/"+e.MessageID, e.SubagentRunID
	case ReasoningMessageContent:
		item, agent = "reasoning/"+e.MessageID, e.SubagentRunID
	case ReasoningMessageEnd:
		item, agent = "reasoning/"+e.MessageID, e.SubagentRunID
	case ReasoningEnd:
		item, agent = "reasoning/"+e.MessageID, e.SubagentRunID
	default:
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

func closesNoChunk(t Type) bool {
	switch t {
	case TypeRaw, TypeActivitySnapshot, TypeActivityDelta, TypeReasoningEncryptedValue, TypeSubagentStarted:
		return true
	}
	return false
}

func (v *verifier) chunked(t Type, id, lane, agent string, named bool) error {
	if id == "" {
		if v.chunk[t] == "" || agent != v.chunks {
			return fmt.Errorf("the first chunk has no id")
		}
		return nil
	}
	if owner, seen := v.owners[lane+id]; seen && agent != "" && agent != owner {
		return fmt.Errorf("%s%s belongs to another subagent", lane, id)
	} else if !seen {
		v.owners[lane+id] = agent
	}
	if _, open := v.open[lane+id]; open {
		return fmt.Errorf("%s%s is open in the other form", lane, id)
	}
	if v.chunk[t] != id && !named {
		return fmt.Errorf("the first chunk has no name")
	}
	clear(v.chunk)
	v.chunk[t], v.chunks = id, agent
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
