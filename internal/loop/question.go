package loop

import (
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// A question as the stream shows it.

// interrupt returns a question as the stream shows it; call is empty for a hook's.
func (r *run) interrupt(ask *holdfast.Interrupt, call string) *agui.Interrupt {
	i := &agui.Interrupt{
		ID:             r.host.Config.NewID("int"),
		Reason:         ask.Reason,
		Message:        ask.Message,
		ToolCallID:     call,
		ResponseSchema: ask.ResponseSchema,
		Metadata:       ask.Metadata,
	}
	if i.Reason == "" {
		i.Reason = holdfast.ReasonInputRequired
	}
	if !ask.ExpiresAt.IsZero() {
		i.ExpiresAt = ask.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return i
}
