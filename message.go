package holdfast

import "encoding/json"

// Role says who speaks.
type Role string

// The roles of messages.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleReasoning Role = "reasoning"
	RoleActivity  Role = "activity"
)

// Message is one message of a conversation, as models and middleware see it.
type Message struct {
	ID   string
	Role Role
	// Text is the content; for content in parts it is empty and Parts is set.
	Text  string
	Parts []Part
	// Calls are the tool calls of an assistant message.
	Calls []ToolCall
	// CallID is the tool call that a tool message answers.
	CallID string
	// Error is set on a tool message whose call failed in the frontend.
	Error string
	Name  string
	// EncryptedValue is a provider's carry-over secret, replayed unchanged.
	EncryptedValue string
	Metadata       json.RawMessage
}

// PartType says what a [Part] holds.
type PartType string

// The types of parts.
const (
	PartText     PartType = "text"
	PartImage    PartType = "image"
	PartAudio    PartType = "audio"
	PartVideo    PartType = "video"
	PartDocument PartType = "document"
)

// Part is a piece of a message's content. A model that cannot use a part skips
// it.
type Part struct {
	Type PartType
	ID   string
	// Text is set for PartText.
	Text string
	// Source is set for every other type.
	Source   *Source
	Metadata json.RawMessage
}

// SourceType says where the content of a [Source] is.
type SourceType string

// The types of sources. A SourceFile is a provider's handle and must never be
// fetched as a URL.
const (
	SourceData SourceType = "data"
	SourceURL  SourceType = "url"
	SourceFile SourceType = "file"
)

// Source is where the content of a media part is.
type Source struct {
	Type SourceType
	// Value is base64, a URL or a provider's handle.
	Value    string
	MIMEType string
	Provider string
}

// PlainText returns the message's text; of content in parts, the text parts
// joined.
func (m *Message) PlainText() string {
	if len(m.Parts) == 0 {
		return m.Text
	}
	var s string
	for _, p := range m.Parts {
		if p.Type == PartText {
			s += p.Text
		}
	}
	return s
}

// Usage counts the tokens of model calls. Input and output are inclusive of
// their details; a nil pointer is "not reported", which is not zero.
type Usage struct {
	Provider        string `json:"provider,omitempty"`
	Model           string `json:"model,omitempty"`
	InputTokens     *int64 `json:"inputTokens,omitempty"`
	OutputTokens    *int64 `json:"outputTokens,omitempty"`
	TotalTokens     *int64 `json:"totalTokens,omitempty"`
	ReasoningTokens *int64 `json:"reasoningTokens,omitempty"`
	CachedInput     *int64 `json:"cachedInputTokens,omitempty"`
	CacheWriteInput *int64 `json:"cacheWriteInputTokens,omitempty"`
}
