package thread

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Happened is a call that was made before the history branched, as a person is told of it.
type Happened struct {
	Tool string `json:"tool"` // the tool's name
	// Arguments are the ones of the call, or the beginning of long ones.
	Arguments string `json:"arguments,omitempty"`
	// Result is the text of the result, or its beginning; empty if the result is not known.
	Result string `json:"result,omitempty"`
	// Message is the id of the result's message.
	Message string `json:"messageId,omitempty"`
}

const (
	maxHappened      = 32  // calls; the newest are kept, and at least one of each tool
	maxHappenedBytes = 300 // of the arguments, and of the result
)

// AllHappened are such calls, the oldest first.
type AllHappened []Happened

// Note adds calls. The memory for them is bounded.
func (a *AllHappened) Note(calls []Happened) {
	for _, h := range calls {
		if h.Message != "" && slices.ContainsFunc(*a, func(o Happened) bool { return o.Message == h.Message }) {
			continue
		}
		h.Arguments, h.Result = shortened(h.Arguments), shortened(h.Result)
		*a = append(slices.Clip(*a), h)
	}
	for len(*a) > maxHappened {
		extra := slices.IndexFunc(*a, func(h Happened) bool { return len(a.With(h.Tool)) > 1 })
		if extra < 0 {
			return
		}
		*a = slices.Delete(slices.Clone(*a), extra, extra+1)
	}
}

// With returns the calls of a tool.
func (a AllHappened) With(tool string) []Happened {
	var calls []Happened
	for _, h := range a {
		if h.Tool == tool {
			calls = append(calls, h)
		}
	}
	return calls
}

// shortened returns the beginning of a long text.
func shortened(text string) string {
	if len(text) <= maxHappenedBytes {
		return text
	}
	cut := maxHappenedBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// TextOf returns the text of a stored content: of a text, or of the parts that are text.
func TextOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
