package server_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/server"
)

// TestRunawayModel: a model that never stops is stopped, once, at the agent's limits, with
// an error that says which; what was shown stays a legal stream, and the thread goes on.
func TestRunawayModel(t *testing.T) {
	kib := strings.Repeat("x", 1<<10)
	for name, next := range map[string]func(n int) holdfast.Delta{
		"maxAnswer": func(int) holdfast.Delta { return holdfast.Delta{Text: kib} },
		"maxCalls": func(n int) holdfast.Delta {
			return holdfast.Delta{Call: &holdfast.CallDelta{Index: n,
				Name: "burn"}}
		},
		"maxArguments": func(int) holdfast.Delta {
			return holdfast.Delta{Call: &holdfast.CallDelta{Name: "burn", Arguments: kib}}
		},
	} {
		var asked, said atomic.Int64
		s := running(t, func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			asked.Add(1)
			return func(yield func(holdfast.Delta, error) bool) {
				for n := 0; yield(next(n), nil); n++ {
					said.Add(1)
				}
			}
		})
		var shown []agui.Event
		for ev, err := range s.Run(t.Context(), me, server.Input{Thread: "t", Text: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			shown = append(shown, must(agui.DecodeEvent(ev.JSON))(t))
		}
		if err := agui.Verify(slices.Values(shown)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		last, ok := shown[len(shown)-1].(agui.RunError)
		if !ok || last.Code != codes.ModelFailed || !strings.Contains(last.Message, name) {
			t.Errorf("%s: %+v", name, shown[len(shown)-1])
		}
		if asked.Load() != 1 || said.Load() > 1100 {
			t.Errorf("%s: the model was asked %d times and said %d KiB", name, asked.Load(), said.Load())
		}
		raw := must(s.Messages(t.Context(), me, "t"))(t)
		if kept := map[string]int{"maxAnswer": 2}; len(raw) != max(kept[name], 1) {
			t.Errorf("%s: the thread has %d messages", name, len(raw))
		}
		if len(raw) > 1 && !strings.Contains(string(raw[1]), `"holdfast":{"partial":true,"failed":true}`) {
			t.Errorf("%s: the failed answer is not marked: …%s", name, raw[1][len(raw[1])-200:])
		}
	}
}
