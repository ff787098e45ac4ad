// Package agui is AG-UI 1.0: its types, a lenient decoder and a strict encoder, the
// machine that keeps a producer's streams legal, and the dialect for older clients. It
// is pure: no I/O, no clock, no goroutines. If AG-UI changes a name, only this package
// changes.
package agui

// The events that start and end runs, and what all events have in common.

import (
	"encoding/json"

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

// Event is one AG-UI event: one of the structs of this package that embed [Base]. The tags of
// its members say how they are written, see [member].
type Event interface{ event() }

// Base holds the members that every event may have.
type Base struct {
	// Timestamp is in milliseconds since 1970; 0 means absent.
	Timestamp int64           `json:"timestamp,omitempty"`
	RawEvent  json.RawMessage `json:"rawEvent,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty" is:"object"`
}

func (Base) event() {}

// RunStarted opens a run.
type RunStarted struct {
	Base
	ThreadID        string          `json:"threadId"`
	RunID           string          `json:"runId"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	ParentRunID     string          `json:"parentRunId,omitempty"`
	Input           json.RawMessage `json:"input,omitempty" is:"object"`
}

// RunFinished ends a run; no Outcome means success.
type RunFinished struct {
	Base
	ThreadID string           `json:"threadId"`
	RunID    string           `json:"runId"`
	Result   json.RawMessage  `json:"result,omitempty"`
	Outcome  *Outcome         `json:"outcome,omitempty"`
	Usage    []holdfast.Usage `json:"usage,omitempty"`
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
	PendingToolCallIDs []string    `json:"pendingToolCallIds,omitempty" of:"success"`
	Interrupts         []Interrupt `json:"interrupts" of:"interrupt"`
}

// Interrupt is a question to a person.
type Interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty" is:"object"`
	// ExpiresAt is a time in RFC 3339 format; empty means never.
	ExpiresAt     string          `json:"expiresAt,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty" is:"object"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

// RunError ends a failed run and everything that is open in it.
type RunError struct {
	Base
	Message string           `json:"message"`
	Code    string           `json:"code,omitempty"`
	Usage   []holdfast.Usage `json:"usage,omitempty"`
}
