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
	// ID is unique in the thread.
	ID string
	// Role says who speaks.
	Role Role
	// Text is the content; empty if Parts holds it.
	Text string
	// Parts is the content of a message in parts; nil if Text holds it.
	Parts []Part
	// Calls are the tool calls of an assistant message.
	Calls []ToolCall
	// CallID is the tool call that a tool message answers.
	CallID string
	// Error is set on a tool message whose call failed in the frontend.
	Error string
	// Name is the speaker's name as the client gave it; empty if it gave none.
	Name string
	// EncryptedValue is opaque data of the provider (such as encrypted reasoning) that
	// is sent back to it unchanged.
	EncryptedValue string
	// Activity is what an activity message says; nil for every other role.
	Activity *Activity
	// Metadata is whatever the message's author attached, as JSON. Its member holdfast is
	// the server's own: clients cannot set it.
	Metadata json.RawMessage
	// Imported means that a client brought the message and the server has not produced it:
	// a message of a history that came with a new thread, the result of a tool that the
	// frontend runs, or what a person says came of a call in doubt. It may be forged. It is
	// never set on what the user has written, which is always the client's.
	Imported bool
}

// Activity is what an activity message says: something about the conversation that people
// see in its history, and that models are not shown. See [Record].
type Activity struct {
	// Type says what kind of activity it is: "owner.name".
	Type string
	// Content is a JSON object.
	Content json.RawMessage
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
	// Type says which of the other fields hold the content.
	Type PartType
	// ID is the client's id of the part; it may be empty.
	ID string
	// Text is set for PartText.
	Text string
	// Source is set for every other type.
	Source *Source
	// EncryptedValue is what a model's provider needs back of an image that it has made, such
	// as a signature. Like that of a [ToolCall] it says whose it is.
	EncryptedValue string `json:",omitempty"`
	// Metadata is whatever the part's author attached, as JSON.
	Metadata json.RawMessage
}

// SourceType says where the content of a [Source] is.
type SourceType string

// The types of sources. A SourceFile holds a provider's handle, which must never be
// fetched as a URL.
const (
	SourceData SourceType = "data"
	SourceURL  SourceType = "url"
	SourceFile SourceType = "file"
)

// Source is where the content of a media part is.
type Source struct {
	// Type says how to read Value.
	Type SourceType
	// Value is base64, a URL or a provider's handle.
	Value string
	// MIMEType is the media type of the content, such as "image/png"; it may be empty.
	MIMEType string
	// Provider is whose handle a SourceFile holds; empty for the other types.
	Provider string
}

// PlainText returns the message's text; if the content is in parts, its text parts
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

// Usage counts the tokens of model calls. A nil pointer means "not reported", which
// is not the same as zero.
type Usage struct {
	// Provider is who served the model, such as "openai".
	Provider string `json:"provider,omitempty"`
	// Model is the model that answered, as the provider names it.
	Model string `json:"model,omitempty"`
	// InputTokens counts the whole input, cached tokens included.
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// OutputTokens counts the whole output, reasoning included.
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// TotalTokens is input plus output, as the provider reports it.
	TotalTokens *int64 `json:"totalTokens,omitempty"`
	// ReasoningTokens is the part of OutputTokens that was reasoning.
	ReasoningTokens *int64 `json:"reasoningTokens,omitempty"`
	// CachedInput is the part of InputTokens that was read from a cache.
	CachedInput *int64 `json:"cachedInputTokens,omitempty"`
	// CacheWriteInput is the part of InputTokens that was written to a cache.
	CacheWriteInput *int64 `json:"cacheWriteInputTokens,omitempty"`
}
