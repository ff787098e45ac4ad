package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// An answer that does not have its form, as the model reads it.

// after returns what the model reads after all else, in the tail: the answer that did not fit, and
// why.
func after(m *thread.Misfit) []holdfast.Message {
	if m == nil {
		return nil
	}
	return []holdfast.Message{
		{ID: "misfit", Role: holdfast.RoleAssistant, Text: m.Answer},
		{ID: "misfit_errors", Role: holdfast.RoleUser, Text: thread.MisfitText(m.Errors)},
	}
}

// behind returns what the model reads behind a message: what is wrong with an answer that was
// kept although it does not fit.
func behind(m *agui.Message) []holdfast.Message {
	errors := thread.MisfitOf(m)
	if errors == nil {
		return nil
	}
	return []holdfast.Message{{ID: m.ID + "_errors", Role: holdfast.RoleUser, Text: thread.MisfitText(errors)}}
}
