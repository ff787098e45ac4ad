package agui

// Decoding events: from JSON of any of the 31 types to this package's structs, and a
// check that members which must be present are.

import (
	"encoding/json"
	"fmt"
)

// newEvent returns a pointer to a new event of the type, to decode into; nil for an
// unknown type. It is long because there are 31 types.
func newEvent(t Type) any {
	switch t {
	case TypeRunStarted:
		return new(RunStarted)
	case TypeRunFinished:
		return new(RunFinished)
	case TypeRunError:
		return new(RunError)
	case TypeStepStarted:
		return new(StepStarted)
	case TypeStepFinished:
		return new(StepFinished)
	case TypeTextMessageStart:
		return new(TextMessageStart)
	case TypeTextMessageContent:
		return new(TextMessageContent)
	case TypeTextMessageEnd:
		return new(TextMessageEnd)
	case TypeTextMessageChunk:
		return new(TextMessageChunk)
	case TypeToolCallStart:
		return new(ToolCallStart)
	case TypeToolCallArgs:
		return new(ToolCallArgs)
	case TypeToolCallEnd:
		return new(ToolCallEnd)
	case TypeToolCallChunk:
		return new(ToolCallChunk)
	case TypeToolCallResult:
		return new(ToolCallResult)
	case TypeStateSnapshot:
		return new(StateSnapshot)
	case TypeStateDelta:
		return new(StateDelta)
	case TypeActivitySnapshot:
		return new(ActivitySnapshot)
	case TypeActivityDelta:
		return new(ActivityDelta)
	case TypeReasoningStart:
		return new(ReasoningStart)
	case TypeReasoningEnd:
		return new(ReasoningEnd)
	case TypeReasoningMessageStart:
		return new(ReasoningMessageStart)
	case TypeReasoningMessageContent:
		return new(ReasoningMessageContent)
	case TypeReasoningMessageEnd:
		return new(ReasoningMessageEnd)
	case TypeReasoningMessageChunk:
		return new(ReasoningMessageChunk)
	case TypeReasoningEncryptedValue:
		return new(ReasoningEncryptedValue)
	case TypeSubagentStarted:
		return new(SubagentStarted)
	case TypeSubagentFinished:
		return new(SubagentFinished)
	case TypeSubagentError:
		return new(SubagentError)
	case TypeRaw:
		return new(Raw)
	case TypeCustom:
		return new(Custom)
	case TypeMessagesSnapshot:
		return new(MessagesSnapshot)
	}
	return nil
}

// value returns what a pointer from newEvent points to. It is long because there are
// 31 types.
func value(p any) Event {
	switch e := p.(type) {
	case *RunStarted:
		return *e
	case *RunFinished:
		return *e
	case *RunError:
		return *e
	case *StepStarted:
		return *e
	case *StepFinished:
		return *e
	case *TextMessageStart:
		return *e
	case *TextMessageContent:
		return *e
	case *TextMessageEnd:
		return *e
	case *TextMessageChunk:
		return *e
	case *ToolCallStart:
		return *e
	case *ToolCallArgs:
		return *e
	case *ToolCallEnd:
		return *e
	case *ToolCallChunk:
		return *e
	case *ToolCallResult:
		return *e
	case *StateSnapshot:
		return *e
	case *StateDelta:
		return *e
	case *ActivitySnapshot:
		return *e
	case *ActivityDelta:
		return *e
	case *ReasoningStart:
		return *e
	case *ReasoningEnd:
		return *e
	case *ReasoningMessageStart:
		return *e
	case *ReasoningMessageContent:
		return *e
	case *ReasoningMessageEnd:
		return *e
	case *ReasoningMessageChunk:
		return *e
	case *ReasoningEncryptedValue:
		return *e
	case *SubagentStarted:
		return *e
	case *SubagentFinished:
		return *e
	case *SubagentError:
		return *e
	case *Raw:
		return *e
	case *Custom:
		return *e
	case *MessagesSnapshot:
		return *e
	}
	return nil
}

// DecodeEvent reads one event of any of the 31 types. Unknown members are ignored; a
// known member of the wrong type, or a missing required one, is an error.
func DecodeEvent(data []byte) (Event, error) {
	var head struct {
		Type Type `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("decode an event: %w", err)
	}
	p := newEvent(head.Type)
	if p == nil {
		return nil, fmt.Errorf("decode an event: unknown type %q", head.Type)
	}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("decode %s: %w", head.Type, err)
	}
	ev := value(p)
	if err := complete(ev); err != nil {
		return nil, fmt.Errorf("decode %s: %w", head.Type, err)
	}
	return ev, nil
}

// complete returns an error if a required member is missing. It accepts empty ids, as
// the official client does; the sequence machine refuses them.
func complete(ev Event) error {
	missing := ""
	switch e := ev.(type) {
	case RunFinished:
		if e.Outcome != nil && e.Outcome.Type == OutcomeInterrupt && len(e.Outcome.Interrupts) == 0 {
			missing = "outcome.interrupts"
		}
	case Custom:
		if len(e.Value) == 0 {
			missing = "value"
		}
	case Raw:
		if len(e.Event) == 0 {
			missing = "event"
		}
	case StateSnapshot:
		if len(e.Snapshot) == 0 {
			missing = "snapshot"
		}
	case ToolCallResult:
		if len(e.Content) == 0 || (e.Content[0] != '"' && e.Content[0] != '[') {
			missing = "content"
		}
	}
	if missing != "" {
		return fmt.Errorf("%s is missing or has the wrong type", missing)
	}
	return nil
}

// TypeOf returns the type of an event in this package's own encoding, without
// parsing it.
func TypeOf(data []byte) Type {
	const prefix = `{"type":"`
	if len(data) < len(prefix) || string(data[:len(prefix)]) != prefix {
		return ""
	}
	rest := data[len(prefix):]
	switch {
	case hasType(rest, TypeTextMessageContent):
		return TypeTextMessageContent
	case hasType(rest, TypeToolCallArgs):
		return TypeToolCallArgs
	case hasType(rest, TypeReasoningMessageContent):
		return TypeReasoningMessageContent
	}
	for i, c := range rest {
		if c == '"' {
			return Type(rest[:i])
		}
	}
	return ""
}

func hasType(rest []byte, t Type) bool {
	return len(rest) > len(t) && string(rest[:len(t)]) == string(t) && rest[len(t)] == '"'
}
