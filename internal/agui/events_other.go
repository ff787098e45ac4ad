package agui

// The events of activities, reasoning and subagents, and those that carry what other
// systems and applications add.

import "encoding/json"

// ActivitySnapshot shows an activity; no Replace means true.
type ActivitySnapshot struct {
	Base
	MessageID     string          `json:"messageId"`
	ActivityType  string          `json:"activityType"`
	Content       json.RawMessage `json:"content" is:"object"`
	Replace       *bool           `json:"replace,omitempty"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
	// Stored is the id of the message that holds the content, if that is another one. It is
	// not written.
	Stored string `json:"-"`
}

// ActivityDelta changes an activity by RFC 6902 operations.
type ActivityDelta struct {
	Base
	MessageID     string          `json:"messageId"`
	ActivityType  string          `json:"activityType"`
	Patch         json.RawMessage `json:"patch" is:"list"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

// ReasoningStart opens a span of reasoning.
type ReasoningStart struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ReasoningEnd closes a span of reasoning.
type ReasoningEnd struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ReasoningMessageStart opens a reasoning message.
type ReasoningMessageStart struct {
	Base
	MessageID     string   `json:"messageId"`
	_             struct{} `always:"role=reasoning"`
	SubagentRunID string   `json:"subagentRunId,omitempty"`
}

// ReasoningMessageContent continues a reasoning message.
type ReasoningMessageContent struct {
	Base
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ReasoningMessageEnd closes a reasoning message.
type ReasoningMessageEnd struct {
	Base
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ReasoningMessageChunk is START, CONTENT and END in one.
type ReasoningMessageChunk struct {
	Base
	MessageID     string `json:"messageId,omitempty"`
	Delta         string `json:"delta,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// ReasoningEncryptedValue carries a provider's opaque data for a message or a tool call.
type ReasoningEncryptedValue struct {
	Base
	Subtype        string `json:"subtype"`
	EntityID       string `json:"entityId"`
	EncryptedValue string `json:"encryptedValue"`
	SubagentRunID  string `json:"subagentRunId,omitempty"`
}

// SubagentStarted opens a subagent's run.
type SubagentStarted struct {
	Base
	SubagentRunID       string `json:"subagentRunId"`
	Name                string `json:"name"`
	Description         string `json:"description,omitempty"`
	ParentSubagentRunID string `json:"parentSubagentRunId,omitempty"`
	ParentToolCallID    string `json:"parentToolCallId,omitempty"`
	ParentMessageID     string `json:"parentMessageId,omitempty"`
}

// SubagentFinished ends a subagent's run.
type SubagentFinished struct {
	Base
	SubagentRunID string          `json:"subagentRunId"`
	Result        json.RawMessage `json:"result,omitempty"`
	Outcome       json.RawMessage `json:"outcome,omitempty" is:"object"`
}

// SubagentError ends a subagent's failed run.
type SubagentError struct {
	Base
	SubagentRunID string `json:"subagentRunId"`
	Message       string `json:"message"`
	Code          string `json:"code,omitempty"`
}

// Raw passes on an event of another system.
type Raw struct {
	Base
	Event         json.RawMessage `json:"event"`
	Source        string          `json:"source,omitempty"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

// Custom is an application's own event; its value is always present.
type Custom struct {
	Base
	Name          string          `json:"name"`
	Value         json.RawMessage `json:"value"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}
