package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestOddCallIDs: a provider's call id is checked as one of a client would be, and replaced
// if it cannot be used, before anybody sees it.
func TestOddCallIDs(t *testing.T) {
	for _, odd := range []string{"", "c\n\r1", "c\x00", "\x7f", "c\x1b[2J", strings.Repeat("c", 257)} {
		model := looptest.Say(
			holdfast.Delta{
				Call:   &holdfast.CallDelta{ID: odd, Name: "ping", Arguments: "{}"},
				Finish: holdfast.FinishToolCalls,
			},
			holdfast.Delta{Text: "done"},
		)
		ping := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
		e := looptest.Start(t, memstore.New(), nil,
			holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{ping}})
		events := looptest.Started(t, e, "t")
		looptest.Succeeded(t, events)
		for _, ev := range events {
			if start, ok := ev.(agui.ToolCallStart); ok && !strings.HasPrefix(start.ToolCallID, "call0") {
				t.Errorf("%q became %q", odd, start.ToolCallID)
			}
		}
	}
}
