package middleware

import (
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// What a summary is made of, in bytes: of one message, and in all.
const (
	maxToldMessage = 4 << 10
	maxTold        = 256 << 10
)

// transcript tells messages as text: a request for a summary has no tools, and
// models refuse calls of tools that they do not have. What is too much is left out
// at the beginning.
func transcript(summary string, messages []holdfast.Message) string {
	var told []string
	left, first := maxTold, len(messages)
	for first > 0 {
		text := tell(&messages[first-1])
		if left -= len(text); left < 0 {
			break
		}
		first--
		told = append(told, text)
	}
	var b strings.Builder
	if summary != "" {
		b.WriteString("Summary of what came before:\n" + summary + "\n\n")
	}
	b.WriteString("The conversation:\n")
	if first > 0 {
		fmt.Fprintf(&b, "[%d older messages are left out.]\n", first)
	}
	for i := len(told) - 1; i >= 0; i-- {
		b.WriteString(told[i])
	}
	return b.String()
}

// tell tells one message. Reasoning is not told: what it led to is.
func tell(m *holdfast.Message) string {
	if m.Role == holdfast.RoleReasoning {
		return ""
	}
	var b strings.Builder
	who := string(m.Role)
	if m.Role == holdfast.RoleTool {
		who = "result of " + m.CallID
	}
	if text := toldText(m); text != "" {
		fmt.Fprintf(&b, "%s: %s\n", who, shortened(text, maxToldMessage))
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, "%s calls %s (%s): %s\n", who, c.Name, c.ID, shortened(string(c.Arguments), maxToldMessage))
	}
	return b.String()
}

func toldText(m *holdfast.Message) string {
	if len(m.Parts) == 0 {
		return strings.TrimSpace(m.Text + " " + m.Error)
	}
	var parts []string
	for _, p := range m.Parts {
		if p.Type == holdfast.PartText {
			parts = append(parts, p.Text)
		} else {
			parts = append(parts, fmt.Sprintf("[%s]", p.Type))
		}
	}
	return strings.Join(parts, " ")
}

// shortened cuts a text to at most limit bytes, between two characters.
func shortened(text string, limit int) string {
	short := prefix(text, limit)
	if short == text {
		return text
	}
	return short + "…"
}

// addUsage is what two model calls took together. The model is that of the first.
func addUsage(a, b *holdfast.Usage) *holdfast.Usage {
	return &holdfast.Usage{
		Provider: a.Provider, Model: a.Model,
		InputTokens: addTokens(a.InputTokens, b.InputTokens), OutputTokens: addTokens(a.OutputTokens, b.OutputTokens),
		TotalTokens: addTokens(a.TotalTokens, b.TotalTokens), ReasoningTokens: addTokens(a.ReasoningTokens, b.ReasoningTokens),
		CachedInput: addTokens(a.CachedInput, b.CachedInput), CacheWriteInput: addTokens(a.CacheWriteInput, b.CacheWriteInput),
	}
}

// addTokens adds counts of which one may not be reported.
func addTokens(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return new(*a + *b)
}
