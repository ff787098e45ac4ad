package agui

// The events of activities, reasoning and subagents, and those that carry what other
// systems and applications add.

import (
	"encoding/json"
	"strconv"
)

// ActivitySnapshot shows an activity; no Replace means true.
type ActivitySnapshot struct {
	Base
	MessageID     string          `json:"messageId"`
	ActivityType  string          `json:"activityType"`
	Content       json.RawMessage `json:"content"`
	Replace       *bool           `json:"replace"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns ACTIVITY_SNAPSHOT.
func (ActivitySnapshot) EventType() Type { return TypeActivitySnapshot }

// AppendJSON implements [Event].
func (e ActivitySnapshot) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeActivitySnapshot)
	o.str("messageId", e.MessageID)
	o.str("activityType", e.ActivityType)
	o.kind("content", e.Content, "{", "{}")
	if e.Replace != nil {
		o.key("replace")
		o.b = strconv.AppendBool(o.b, *e.Replace)
	}
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ActivityDelta changes an activity by RFC 6902 operations.
type ActivityDelta struct {
	Base
	MessageID     string          `json:"messageId"`
	ActivityType  string          `json:"activityType"`
	Patch         json.RawMessage `json:"patch"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns ACTIVITY_DELTA.
func (ActivityDelta) EventType() Type { return TypeActivityDelta }

// AppendJSON implements [Event].
func (e ActivityDelta) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeActivityDelta)
	o.str("messageId", e.MessageID)
	o.str("activityType", e.ActivityType)
	o.kind("patch", e.Patch, "[", "[]")
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningStart opens a span of reasoning.
type ReasoningStart struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns REASONING_START.
func (ReasoningStart) EventType() Type { return TypeReasoningStart }

// AppendJSON implements [Event].
func (e ReasoningStart) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningStart)
	o.str("messageId", e.MessageID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningEnd closes a span of reasoning.
type ReasoningEnd struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns REASONING_END.
func (ReasoningEnd) EventType() Type { return TypeReasoningEnd }

// AppendJSON implements [Event].
func (e ReasoningEnd) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningEnd)
	o.str("messageId", e.MessageID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningMessageStart opens a reasoning message.
type ReasoningMessageStart struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns REASONING_MESSAGE_START.
func (ReasoningMessageStart) EventType() Type { return TypeReasoningMessageStart }

// AppendJSON implements [Event].
func (e ReasoningMessageStart) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningMessageStart)
	o.str("messageId", e.MessageID)
	o.str("role", "reasoning")
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningMessageContent continues a reasoning message.
type ReasoningMessageContent struct {
	Base
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns REASONING_MESSAGE_CONTENT.
func (ReasoningMessageContent) EventType() Type { return TypeReasoningMessageContent }

// AppendJSON implements [Event].
func (e ReasoningMessageContent) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningMessageContent)
	o.str("messageId", e.MessageID)
	o.str("delta", e.Delta)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningMessageEnd closes a reasoning message.
type ReasoningMessageEnd struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns REASONING_MESSAGE_END.
func (ReasoningMessageEnd) EventType() Type { return TypeReasoningMessageEnd }

// AppendJSON implements [Event].
func (e ReasoningMessageEnd) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningMessageEnd)
	o.str("messageId", e.MessageID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningMessageChunk is START, CONTENT and END in one.
type ReasoningMessageChunk struct {
	Base
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns REASONING_MESSAGE_CHUNK.
func (ReasoningMessageChunk) EventType() Type { return TypeReasoningMessageChunk }

// AppendJSON implements [Event].
func (e ReasoningMessageChunk) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningMessageChunk)
	o.opt("messageId", e.MessageID)
	o.opt("delta", e.Delta)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ReasoningEncryptedValue carries a provider's opaque data for a message or a tool call.
type ReasoningEncryptedValue struct {
	Base
	Subtype        string `json:"subtype"`
	EntityID       string `json:"entityId"`
	EncryptedValue string `json:"encryptedValue"`
	SubagentRunID  string `json:"subagentRunId"`
}

// EventType returns REASONING_ENCRYPTED_VALUE.
func (ReasoningEncryptedValue) EventType() Type { return TypeReasoningEncryptedValue }

// AppendJSON implements [Event].
func (e ReasoningEncryptedValue) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeReasoningEncryptedValue)
	o.str("subtype", e.Subtype)
	o.str("entityId", e.EntityID)
	o.str("encryptedValue", e.EncryptedValue)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// SubagentStarted opens a subagent's run.
type SubagentStarted struct {
	Base
	Name                string `json:"name"`
	Description         string `json:"description"`
	ParentSubagentRunID string `json:"parentSubagentRunId"`
	ParentToolCallID    string `json:"parentToolCallId"`
	ParentMessageID     string `json:"parentMessageId"`
	SubagentRunID       string `json:"subagentRunId"`
}

// EventType returns SUBAGENT_STARTED.
func (SubagentStarted) EventType() Type { return TypeSubagentStarted }

// AppendJSON implements [Event].
func (e SubagentStarted) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeSubagentStarted)
	o.str("subagentRunId", e.SubagentRunID)
	o.str("name", e.Name)
	o.opt("description", e.Description)
	o.opt("parentSubagentRunId", e.ParentSubagentRunID)
	o.opt("parentToolCallId", e.ParentToolCallID)
	o.opt("parentMessageId", e.ParentMessageID)
	o.base(&e.Base)
	return o.end()
}

// SubagentFinished ends a subagent's run.
type SubagentFinished struct {
	Base
	Result        json.RawMessage `json:"result"`
	Outcome       json.RawMessage `json:"outcome"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns SUBAGENT_FINISHED.
func (SubagentFinished) EventType() Type { return TypeSubagentFinished }

// AppendJSON implements [Event].
func (e SubagentFinished) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeSubagentFinished)
	o.str("subagentRunId", e.SubagentRunID)
	o.raw("result", e.Result)
	o.obj("outcome", e.Outcome)
	o.base(&e.Base)
	return o.end()
}

// SubagentError ends a subagent's failed run.
type SubagentError struct {
	Base
	Message       string `json:"message"`
	Code          string `json:"code"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns SUBAGENT_ERROR.
func (SubagentError) EventType() Type { return TypeSubagentError }

// AppendJSON implements [Event].
func (e SubagentError) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeSubagentError)
	o.str("subagentRunId", e.SubagentRunID)
	o.str("message", e.Message)
	o.opt("code", e.Code)
	o.base(&e.Base)
	return o.end()
}

// Raw passes on an event of another system.
type Raw struct {
	Base
	Event         json.RawMessage `json:"event"`
	Source        string          `json:"source"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns RAW.
func (Raw) EventType() Type { return TypeRaw }

// AppendJSON implements [Event].
func (e Raw) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeRaw)
	o.always("event", e.Event)
	o.opt("source", e.Source)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// Custom is an application's own event; its value is always present.
type Custom struct {
	Base
	Name          string          `json:"name"`
	Value         json.RawMessage `json:"value"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns CUSTOM.
func (Custom) EventType() Type { return TypeCustom }

// AppendJSON implements [Event].
func (e Custom) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeCustom)
	o.str("name", e.Name)
	o.always("value", e.Value)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}
