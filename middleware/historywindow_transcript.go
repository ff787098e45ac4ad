package middleware

import (
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// maxMessage and maxTranscript bound a transcript, in bytes: what it has of one message,
// and in total. It is not made smaller than minTranscript because a model cannot take it.
const (
	maxMessage    = 4 << 10
	maxTranscript = 256 << 10
	minTranscript = 1 << 10
)

// transcript writes messages as text, for a request without tools: models refuse calls of
// tools that they do not have. If there is more than limit bytes, the oldest messages are
// left out.
func transcript(summary string, messages []holdfast.Message, limit int) string {
	var lines []string
	left, first := limit, len(messages)
	for first > 0 {
		text := entry(&messages[first-1])
		if left -= len(text); left < 0 {
			break
		}
		first--
		lines = append(lines, text)
	}
	var b strings.Builder
	if summary != "" {
		b.WriteString("Summary of what came before:\n" + summary + "\n\n")
	}
	b.WriteString("The conversation:\n")
	if first > 0 {
		fmt.Fprintf(&b, "[%d older messages are left out.]\n", first)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}

// entry writes one message: a line for its text and one for each call. Reasoning is left
// out, because what it led to is there.
func entry(m *holdfast.Message) string {
	if m.Role == holdfast.RoleReasoning {
		return ""
	}
	var b strings.Builder
	who := string(m.Role)
	if m.Role == holdfast.RoleTool {
		who = "result of " + m.CallID
	}
	if text := contentOf(m); text != "" {
		fmt.Fprintf(&b, "%s: %s\n", who, shortened(text, maxMessage))
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&b, "%s calls %s (%s): %s\n", who, c.Name, c.ID, shortened(string(c.Arguments), maxMessage))
	}
	return b.String()
}

func contentOf(m *holdfast.Message) string {
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

// shortened cuts a text to at most limit bytes and marks the cut.
func shortened(text string, limit int) string {
	short := prefix(text, limit)
	if short == text {
		return text
	}
	return short + "…"
}

// addUsage returns what two model calls used together. The model is that of the first.
func addUsage(a, b *holdfast.Usage) *holdfast.Usage {
	return &holdfast.Usage{
		Provider:        a.Provider,
		Model:           a.Model,
		InputTokens:     addTokens(a.InputTokens, b.InputTokens),
		OutputTokens:    addTokens(a.OutputTokens, b.OutputTokens),
		TotalTokens:     addTokens(a.TotalTokens, b.TotalTokens),
		ReasoningTokens: addTokens(a.ReasoningTokens, b.ReasoningTokens),
		CachedInput:     addTokens(a.CachedInput, b.CachedInput),
		CacheWriteInput: addTokens(a.CacheWriteInput, b.CacheWriteInput),
	}
}

// addTokens adds two counts; nil is one that was not reported.
func addTokens(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return new(*a + *b)
}
