package agui

import (
	"fmt"
	"iter"
)

// Verify checks a whole stream as a consumer does, with state of its own: that
// every event may come where it comes, and that the stream ends with a run's end.
// It is for tests; a producer uses a [Sequencer].
func Verify(events iter.Seq[Event]) error {
	v := verifier{open: map[string]Type{}, agents: map[string]bool{}}
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
	failed bool
	open   map[string]Type // "lane/id"
	agents map[string]bool
	chunk  map[Type]string
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
		v.open, v.agents, v.chunk = map[string]Type{}, map[string]bool{}, map[Type]string{}
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
	switch e := ev.(type) {
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
		return v.begin("step/"+e.StepName, t)
	case StepFinished:
		return v.finish("step/" + e.StepName)
	case SubagentStarted:
		return v.begin("subagent/"+e.SubagentRunID, t)
	case SubagentFinished:
		return v.finish("subagent/" + e.SubagentRunID)
	case SubagentError:
		return v.finish("subagent/" + e.SubagentRunID)
	case TextMessageChunk:
		return v.chunked(t, e.MessageID, "text/", true)
	case ToolCallChunk:
		return v.chunked(t, e.ToolCallID, "call/", e.ToolCallName != "")
	case ReasoningMessageChunk:
		return v.chunked(t, e.MessageID, "reasoning/", true)
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

func (v *verifier) chunked(t Type, id, lane string, named bool) error {
	if id == "" {
		if v.chunk[t] == "" {
			return fmt.Errorf("the first chunk has no id")
		}
		return nil
	}
	if _, open := v.open[lane+id]; open {
		return fmt.Errorf("%s%s is open in the other form", lane, id)
	}
	if v.chunk[t] != id && !named {
		return fmt.Errorf("the first chunk has no name")
	}
	clear(v.chunk)
	v.chunk[t] = id
	return nil
}

func (v *verifier) begin(id string, t Type) error {
	if _, open := v.open[id]; open {
		return fmt.Errorf("%s is open", id)
	}
	v.open[id] = t
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
