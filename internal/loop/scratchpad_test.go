package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestScratchpad: calls at the same time change the notes one after the other, beside what
// the client has in the state, and the notes go back to a checkpoint with the thread.
func TestScratchpad(t *testing.T) {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if last := req.Messages[len(req.Messages)-1]; last.Role == holdfast.RoleTool {
				yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
				return
			}
			for i := range 3 {
				if !yield(
					holdfast.Delta{
						Call: &holdfast.CallDelta{
							Index:     i,
							Name:      "scratchpad",
							Arguments: `{"action":"append","text":"x"}`,
						},
					},
					nil,
				) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	e := looptest.Start(t, memstore.New(), nil,
		holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{tools.Scratchpad()}})
	want := func(thread, state string) {
		t.Helper()
		if got := looptest.Must(e.Keeper.State(t.Context(), looptest.Alice, thread))(t); string(got.State) != state {
			t.Errorf("%s: the state is %s, want %s", thread, got.State, state)
		}
	}
	first := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
	first.State = json.RawMessage(`{"plan":[1.0]}`)
	looptest.Succeeded(t, looptest.Posted(t, e, first))
	want("t", `{"plan":[1.0],"scratchpad":"xxx"}`)
	then := looptest.Must(e.Keeper.Checkpoints(t.Context(), looptest.Alice, "t", "", time.Time{}, 1))(t)[0].ID
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "go on"))))
	want("t", `{"plan":[1.0],"scratchpad":"xxxxxx"}`)
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: then}))(t)
	want(fork.Thread.ID, `{"plan":[1.0],"scratchpad":"xxx"}`)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: then}))(t)
	want("t", `{"plan":[1.0],"scratchpad":"xxx"}`)
	mine := looptest.RunInput("t", "r3", looptest.UserSays("u3", "mine"))
	mine.State = json.RawMessage(`{"plan":[2]}`)
	looptest.Succeeded(t, looptest.Posted(t, e, mine))
	want("t", `{"plan":[2],"scratchpad":"xxx"}`)
}
