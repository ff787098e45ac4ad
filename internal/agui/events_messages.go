package agui

// The events of steps, text messages, tool calls and the shared state.

import "encoding/json"

// StepStarted opens a named step.
type StepStarted struct {
	Base
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// StepFinished ends a step.
type StepFinished struct {
	Base
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// TextMessageStart opens a message; no Role means assistant.
type TextMessageStart struct {
	Base
	MessageID     string `json:"messageId"`
	Role          string `json:"role,omitempty"`
	Name          string `json:"name,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// TextMessageContent continues an open message.
type TextMessageContent struct {
	Base
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// TextMessageEnd closes a message.
type TextMessageEnd struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// TextMessageChunk is START, CONTENT and END in one; a message's first chunk has its id.
type TextMessageChunk struct {
	Base
	MessageID     string `json:"messageId,omitempty"`
	Role          string `json:"role,omitempty"`
	Delta         string `json:"delta,omitempty"`
	Name          string `json:"name,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ToolCallStart opens a tool call of the message ParentMessageID.
type ToolCallStart struct {
	Base
	ToolCallID      string `json:"toolCallId"`
	ToolCallName    string `json:"toolCallName"`
	ParentMessageID string `json:"parentMessageId,omitempty"`
	SubagentRunID   string `json:"subagentRunId,omitempty"`
}

// ToolCallArgs continues the arguments of an open call.
type ToolCallArgs struct {
	Base
	ToolCallID    string `json:"toolCallId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ToolCallEnd closes a call.
type ToolCallEnd struct {
	Base
	ToolCallID    string `json:"toolCallId"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ToolCallChunk is START, ARGS and END in one; a call's first chunk has its id and name.
type ToolCallChunk struct {
	Base
	ToolCallID      string `json:"toolCallId,omitempty"`
	ToolCallName    string `json:"toolCallName,omitempty"`
	ParentMessageID string `json:"parentMessageId,omitempty"`
	Delta           string `json:"delta,omitempty"`
	SubagentRunID   string `json:"subagentRunId,omitempty"`
}

// ToolCallResult shows a call's result; Content is a JSON string or a list of parts.
type ToolCallResult struct {
	Base
	MessageID     string          `json:"messageId"`
	ToolCallID    string          `json:"toolCallId"`
	Content       json.RawMessage `json:"content" is:"text or list"`
	Role          string          `json:"role,omitempty"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

// StateSnapshot replaces the shared state; null is a valid state.
type StateSnapshot struct {
	Base
	Snapshot      json.RawMessage `json:"snapshot"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

// StateDelta changes the shared state by RFC 6902 operations.
type StateDelta struct {
	Base
	Delta         json.RawMessage `json:"delta" is:"list"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}
