package agui

// The events of steps, text messages, tool calls and the shared state.

import "encoding/json"

// StepStarted opens a named step.
type StepStarted struct {
	Base
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns STEP_STARTED.
func (StepStarted) EventType() Type { return TypeStepStarted }

// AppendJSON implements [Event].
func (e StepStarted) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeStepStarted)
	o.str("stepName", e.StepName)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// StepFinished ends a step.
type StepFinished struct {
	Base
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns STEP_FINISHED.
func (StepFinished) EventType() Type { return TypeStepFinished }

// AppendJSON implements [Event].
func (e StepFinished) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeStepFinished)
	o.str("stepName", e.StepName)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// TextMessageStart opens a message; no Role means assistant.
type TextMessageStart struct {
	Base
	MessageID     string `json:"messageId"`
	Role          string `json:"role"`
	Name          string `json:"name"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns TEXT_MESSAGE_START.
func (TextMessageStart) EventType() Type { return TypeTextMessageStart }

// AppendJSON implements [Event].
func (e TextMessageStart) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeTextMessageStart)
	o.str("messageId", e.MessageID)
	o.opt("role", e.Role)
	o.opt("name", e.Name)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// TextMessageContent continues an open message.
type TextMessageContent struct {
	Base
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns TEXT_MESSAGE_CONTENT.
func (TextMessageContent) EventType() Type { return TypeTextMessageContent }

// AppendJSON implements [Event].
func (e TextMessageContent) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeTextMessageContent)
	o.str("messageId", e.MessageID)
	o.str("delta", e.Delta)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// TextMessageEnd closes a message.
type TextMessageEnd struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns TEXT_MESSAGE_END.
func (TextMessageEnd) EventType() Type { return TypeTextMessageEnd }

// AppendJSON implements [Event].
func (e TextMessageEnd) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeTextMessageEnd)
	o.str("messageId", e.MessageID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// TextMessageChunk is START, CONTENT and END in one; a message's first chunk has its id.
type TextMessageChunk struct {
	Base
	MessageID     string `json:"messageId"`
	Role          string `json:"role"`
	Delta         string `json:"delta"`
	Name          string `json:"name"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns TEXT_MESSAGE_CHUNK.
func (TextMessageChunk) EventType() Type { return TypeTextMessageChunk }

// AppendJSON implements [Event].
func (e TextMessageChunk) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeTextMessageChunk)
	o.opt("messageId", e.MessageID)
	o.opt("role", e.Role)
	o.opt("delta", e.Delta)
	o.opt("name", e.Name)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ToolCallStart opens a tool call of the message ParentMessageID.
type ToolCallStart struct {
	Base
	ToolCallID      string `json:"toolCallId"`
	ToolCallName    string `json:"toolCallName"`
	ParentMessageID string `json:"parentMessageId"`
	SubagentRunID   string `json:"subagentRunId"`
}

// EventType returns TOOL_CALL_START.
func (ToolCallStart) EventType() Type { return TypeToolCallStart }

// AppendJSON implements [Event].
func (e ToolCallStart) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeToolCallStart)
	o.str("toolCallId", e.ToolCallID)
	o.str("toolCallName", e.ToolCallName)
	o.opt("parentMessageId", e.ParentMessageID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ToolCallArgs continues the arguments of an open call.
type ToolCallArgs struct {
	Base
	ToolCallID    string `json:"toolCallId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns TOOL_CALL_ARGS.
func (ToolCallArgs) EventType() Type { return TypeToolCallArgs }

// AppendJSON implements [Event].
func (e ToolCallArgs) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeToolCallArgs)
	o.str("toolCallId", e.ToolCallID)
	o.str("delta", e.Delta)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ToolCallEnd closes a call.
type ToolCallEnd struct {
	Base
	ToolCallID    string `json:"toolCallId"`
	SubagentRunID string `json:"subagentRunId"`
}

// EventType returns TOOL_CALL_END.
func (ToolCallEnd) EventType() Type { return TypeToolCallEnd }

// AppendJSON implements [Event].
func (e ToolCallEnd) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeToolCallEnd)
	o.str("toolCallId", e.ToolCallID)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ToolCallChunk is START, ARGS and END in one; a call's first chunk has its id and name.
type ToolCallChunk struct {
	Base
	ToolCallID      string `json:"toolCallId"`
	ToolCallName    string `json:"toolCallName"`
	ParentMessageID string `json:"parentMessageId"`
	Delta           string `json:"delta"`
	SubagentRunID   string `json:"subagentRunId"`
}

// EventType returns TOOL_CALL_CHUNK.
func (ToolCallChunk) EventType() Type { return TypeToolCallChunk }

// AppendJSON implements [Event].
func (e ToolCallChunk) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeToolCallChunk)
	o.opt("toolCallId", e.ToolCallID)
	o.opt("toolCallName", e.ToolCallName)
	o.opt("parentMessageId", e.ParentMessageID)
	o.opt("delta", e.Delta)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// ToolCallResult shows a call's result; Content is a JSON string or a list of parts.
type ToolCallResult struct {
	Base
	MessageID     string          `json:"messageId"`
	ToolCallID    string          `json:"toolCallId"`
	Content       json.RawMessage `json:"content"`
	Role          string          `json:"role"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns TOOL_CALL_RESULT.
func (ToolCallResult) EventType() Type { return TypeToolCallResult }

// AppendJSON implements [Event].
func (e ToolCallResult) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeToolCallResult)
	o.str("messageId", e.MessageID)
	o.str("toolCallId", e.ToolCallID)
	o.kind("content", e.Content, "\"[", `""`)
	o.opt("role", e.Role)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// StateSnapshot replaces the shared state; null is a valid state.
type StateSnapshot struct {
	Base
	Snapshot      json.RawMessage `json:"snapshot"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns STATE_SNAPSHOT.
func (StateSnapshot) EventType() Type { return TypeStateSnapshot }

// AppendJSON implements [Event].
func (e StateSnapshot) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeStateSnapshot)
	o.always("snapshot", e.Snapshot)
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}

// StateDelta changes the shared state by RFC 6902 operations.
type StateDelta struct {
	Base
	Delta         json.RawMessage `json:"delta"`
	SubagentRunID string          `json:"subagentRunId"`
}

// EventType returns STATE_DELTA.
func (StateDelta) EventType() Type { return TypeStateDelta }

// AppendJSON implements [Event].
func (e StateDelta) AppendJSON(dst []byte) []byte {
	o := event(dst, TypeStateDelta)
	o.kind("delta", e.Delta, "[", "[]")
	o.opt("subagentRunId", e.SubagentRunID)
	o.base(&e.Base)
	return o.end()
}
