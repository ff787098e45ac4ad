// Package agui is AG-UI 1.0: its types, a lenient decoder and a strict encoder, the
// machine that keeps a producer's streams legal, and the dialect for older clients. It
// is pure: no I/O, no clock, no goroutines. If AG-UI changes a name, only this package
// changes.
package agui

// The events that start and end runs, and what all events have in common.

import (
	"encoding/json"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// ProtocolVersion is the version that this server speaks (AG-UI spec,
// versioning).
const ProtocolVersion = "1.0"

// Type is an event's type.
type Type string

// The 31 types of AG-UI 1.0.
const (
	TypeRunStarted              Type = "RUN_STARTED"
	TypeRunFinished             Type = "RUN_FINISHED"
	TypeRunError                Type = "RUN_ERROR"
	TypeStepStarted             Type = "STEP_STARTED"
	TypeStepFinished            Type = "STEP_FINISHED"
	TypeTextMessageStart        Type = "TEXT_MESSAGE_START"
	TypeTextMessageContent      Type = "TEXT_MESSAGE_CONTENT"
	TypeTextMessageEnd          Type = "TEXT_MESSAGE_END"
	TypeTextMessageChunk        Type = "TEXT_MESSAGE_CHUNK"
	TypeToolCallStart           Type = "TOOL_CALL_START"
	TypeToolCallArgs            Type = "TOOL_CALL_ARGS"
	TypeToolCallEnd             Type = "TOOL_CALL_END"
	TypeToolCallChunk           Type = "TOOL_CALL_CHUNK"
	TypeToolCallResult          Type = "TOOL_CALL_RESULT"
	TypeStateSnapshot           Type = "STATE_SNAPSHOT"
	TypeStateDelta              Type = "STATE_DELTA"
	TypeMessagesSnapshot        Type = "MESSAGES_SNAPSHOT"
	TypeActivitySnapshot        Type = "ACTIVITY_SNAPSHOT"
	TypeActivityDelta           Type = "ACTIVITY_DELTA"
	TypeReasoningStart          Type = "REASONING_START"
	TypeReasoningEnd            Type = "REASONING_END"
	TypeReasoningMessageStart   Type = "REASONING_MESSAGE_START"
	TypeReasoningMessageContent Type = "REASONING_MESSAGE_CONTENT"
	TypeReasoningMessageEnd     Type = "REASONING_MESSAGE_END"
	TypeReasoningMessageChunk   Type = "REASONING_MESSAGE_CHUNK"
	TypeReasoningEncryptedValue Type = "REASONING_ENCRYPTED_VALUE"
	TypeSubagentStarted         Type = "SUBAGENT_STARTED"
	TypeSubagentFinished        Type = "SUBAGENT_FINISHED"
	TypeSubagentError           Type = "SUBAGENT_ERROR"
	TypeRaw                     Type = "RAW"
	TypeCustom                  Type = "CUSTOM"
)

// IsDelta reports whether events of the type are pieces of a text.
func (t Type) IsDelta() bool {
	return t == TypeTextMessageContent || t == TypeReasoningMessageContent || t == TypeToolCallArgs
}

// Event is one AG-UI event.
type Event interface {
	EventType() Type
	// AppendJSON appends the event as strict AG-UI 1.0 JSON on one line; "type" is
	// its first member.
	AppendJSON(dst []byte) []byte
}

// Frame is the content of one Server-Sent Event. Without an ID it is not a record of
// the log, but part of a prelude or a notice.
type Frame struct {
	ID   string
	Data []byte
	// Pieces, if set, has the event instead of Data, in pieces that are made as they are
	// sent. After an error the event cannot be completed.
	Pieces iter.Seq2[[]byte, error]
	// Held is what Pieces holds in memory until it is sent, in bytes.
	Held int64
}

// HeldBy returns what frames hold in memory until they are sent, in bytes.
func HeldBy(frames []Frame) (bytes int64) {
	for i := range frames {
		bytes += int64(len(frames[i].Data)) + frames[i].Held
	}
	return bytes
}

// Reply is a stream to send. Frames yields the available frames in batches; an empty
// batch means that there was nothing to send for a while. After an error it yields
// nothing more.
type Reply struct {
	ThreadID string
	RunID    string
	Frames   iter.Seq2[[]Frame, error]
	// Held is what the first frames hold in memory, before they are asked for.
	Held int64
	// Side means that the run is stored nowhere: nobody can come back for what they miss.
	Side bool
}

// Whole is Frames with each event in one piece.
func (r *Reply) Whole() iter.Seq2[[]Frame, error] {
	return func(yield func([]Frame, error) bool) {
		for frames, err := range r.Frames {
			for i := range frames {
				if frames[i].Pieces == nil {
					continue
				}
				for piece, broken := range frames[i].Pieces {
					if broken != nil {
						yield(nil, broken)
						return
					}
					frames[i].Data = append(frames[i].Data, piece...)
				}
				frames[i].Pieces = nil
			}
			if !yield(frames, err) {
				return
			}
		}
	}
}

// Base holds the members that every event may have.
type Base struct {
	// Timestamp is in milliseconds since 1970; 0 means absent.
	Timestamp int64           `json:"timestamp"`
	RawEvent  json.RawMessage `json:"rawEvent"`
	Metadata  json.RawMessage `json:"metadata"`
}

func (o *object) base(b *Base) {
	if b.Timestamp != 0 {
		o.int("timestamp", &b.Timestamp)
	}
	o.raw("rawEvent", b.RawEvent)
	o.obj("metadata", b.Metadata)
}

func event(dst []byte, t Type) object {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, t...)
	dst = append(dst, '"')
	return object{b: dst}
}

// RunStarted opens a run.
type RunStarted struct {
	Base
	ThreadID        string          `json:"threadId"`
	RunID           string          `json:"runId"`
	ProtocolVersion string          `json:"protocolVersion"`
	ParentRunID     string          `json:"parentRunId"`
	Input           json.RawMessage `json:"input"`
}

// EventType returns RUN_STARTED.
func (RunStarted) EventType() Type { return TypeRunStarted }

// AppendJSON implements [Event].
func (e RunStarted) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeRunStarted)
	o.str("threadId", e.ThreadID)
	o.str("runId", e.RunID)
	o.opt("protocolVersion", e.ProtocolVersion)
	o.opt("parentRunId", e.ParentRunID)
	o.obj("input", e.Input)
	o.base(&e.Base)
	return o.end()
}

// RunFinished ends a run; no Outcome means success.
type RunFinished struct {
	Base
	ThreadID string           `json:"threadId"`
	RunID    string           `json:"runId"`
	Result   json.RawMessage  `json:"result"`
	Outcome  *Outcome         `json:"outcome"`
	Usage    []holdfast.Usage `json:"usage"`
}

// EventType returns RUN_FINISHED.
func (RunFinished) EventType() Type { return TypeRunFinished }

// AppendJSON implements [Event].
func (e RunFinished) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeRunFinished)
	o.str("threadId", e.ThreadID)
	o.str("runId", e.RunID)
	o.raw("result", e.Result)
	if e.Outcome != nil {
		o.key("outcome")
		o.b = e.Outcome.appendJSON(o.b)
	}
	o.usage(e.Usage)
	o.base(&e.Base)
	return o.end()
}

// OutcomeType is how a run ended.
type OutcomeType string

// The outcomes (AG-UI spec, outcomes).
const (
	OutcomeSuccess   OutcomeType = "success"
	OutcomeInterrupt OutcomeType = "interrupt"
	OutcomeCancelled OutcomeType = "cancelled"
)

// Outcome is how a run ended. Only success may have PendingToolCallIDs; interrupt has
// at least one entry in Interrupts.
type Outcome struct {
	Type               OutcomeType `json:"type"`
	PendingToolCallIDs []string    `json:"pendingToolCallIds"`
	Interrupts         []Interrupt `json:"interrupts"`
}

func (c *Outcome) appendJSON(dst []byte) []byte {
	o := event(dst, Type(c.Type))
	if c.Type == OutcomeSuccess && len(c.PendingToolCallIDs) > 0 {
		o.strings("pendingToolCallIds", c.PendingToolCallIDs)
	}
	if c.Type == OutcomeInterrupt {
		o.key("interrupts")
		o.b = append(o.b, '[')
		for i := range c.Interrupts {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.b = c.Interrupts[i].appendJSON(o.b)
		}
		o.b = append(o.b, ']')
	}
	return o.end()
}

// Interrupt is a question to a person.
type Interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	// ExpiresAt is a time in RFC 3339 format; empty means never.
	ExpiresAt     string          `json:"expiresAt,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

func (i *Interrupt) appendJSON(dst []byte) []byte {
	o := begin(dst)
	o.str("id", i.ID)
	o.str("reason", i.Reason)
	o.opt("message", i.Message)
	o.opt("toolCallId", i.ToolCallID)
	o.obj("responseSchema", i.ResponseSchema)
	o.opt("expiresAt", i.ExpiresAt)
	o.obj("metadata", i.Metadata)
	o.opt("subagentRunId", i.SubagentRunID)
	return o.end()
}

// RunError ends a failed run and everything that is open in it.
type RunError struct {
	Base
	Message string           `json:"message"`
	Code    string           `json:"code"`
	Usage   []holdfast.Usage `json:"usage"`
}

// EventType returns RUN_ERROR.
func (RunError) EventType() Type { return TypeRunError }

// AppendJSON implements [Event].
func (e RunError) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeRunError)
	o.str("message", e.Message)
	o.opt("code", e.Code)
	o.usage(e.Usage)
	o.base(&e.Base)
	return o.end()
}
