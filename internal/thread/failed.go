package thread

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// An answer that has failed is what a model had said when its run ended in an error. People
// have read it, so it stays in the history, marked, for everybody who is shown that; models are
// never shown it, so they are asked as if it had not been said. Of several tries the words of the
// last one that said anything are kept, without calls that were still being written: those never
// happened.

// failedMark is what the server says about such a message.
var failedMark = json.RawMessage(`{"partial":true,"failed":true}`)

// MarkFailed marks a message as a part of an answer that has failed.
func MarkFailed(m *agui.Message) { m.Mark(failedMark) }

// FailedOf returns what is kept of an answer that has failed, marked as that: its texts and its
// reasoning. messages are what it has shown.
func FailedOf(messages []agui.Message) (kept []agui.Message) {
	for _, m := range messages {
		if m.ToolCalls = nil; len(m.Content) > 0 && answers(&m) {
			MarkFailed(&m)
			kept = append(kept, m)
		}
	}
	return kept
}

// answers reports whether a model has said the message.
func answers(m *agui.Message) bool {
	return m.Role == string(holdfast.RoleAssistant) || m.Role == string(holdfast.RoleReasoning)
}

// Failed reports whether the message is marked as a part of an answer that has failed.
func Failed(m *agui.Message) bool {
	if !answers(m) || len(m.ToolCalls) > 0 || !bytes.Contains(m.Metadata, []byte(`"failed"`)) {
		return false
	}
	var metadata struct {
		Holdfast struct {
			Failed bool `json:"failed"`
		} `json:"holdfast"`
	}
	return json.Unmarshal(m.Metadata, &metadata) == nil && metadata.Holdfast.Failed
}

// Aside reports whether the message stands beside the conversation that models have: an
// activity, or a part of an answer that has failed.
func Aside(m *agui.Message) bool { return m.Role == string(holdfast.RoleActivity) || Failed(m) }
