package budget

import (
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestEstimate: whatever the model is sent counts, no matter who has written it.
func TestEstimate(t *testing.T) {
	const text = "123456"
	for name, req := range map[string]holdfast.ModelRequest{
		"instructions":        {Instructions: []string{text}},
		"client instructions": {ClientInstructions: []string{text}},
		"a message":           {Messages: []holdfast.Message{{Text: text}}},
		"a tool":              {Tools: []holdfast.ToolSpec{{Name: "123", Description: "456"}}},
		"context":             {Context: []holdfast.ContextItem{{Description: "123", Value: "456"}}},
	} {
		if got := estimate(&req); got != 2 {
			t.Errorf("%s of six bytes: %d tokens, want 2", name, got)
		}
	}
}
