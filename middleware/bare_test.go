package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
)

// bareRun is a run of one middleware without a server.
type bareRun struct {
	*hooktest.Run
	m holdfast.Middleware
}

func bare(t *testing.T, m holdfast.Middleware) *bareRun { return &bareRun{hooktest.New(t), m} }

// bareStored returns a run with stored states.
func bareStored(t *testing.T, m holdfast.Middleware, stored string) *bareRun {
	t.Helper()
	h := bare(t, m)
	h.Restore(stored)
	return h
}

// batch passes calls, each "name arguments", to the Batch hook.
func (h *bareRun) batch(calls ...string) (*holdfast.Batch, error) {
	list := make([]holdfast.ToolCall, len(calls))
	for i, c := range calls {
		name, arguments, _ := strings.Cut(c, " ")
		list[i] = holdfast.ToolCall{ID: fmt.Sprint(i), Name: name, Arguments: json.RawMessage(arguments)}
	}
	b := holdfast.NewBatch(&holdfast.Iteration{}, list)
	return b, h.m.Batch(h.Context(), b)
}

// callingModel is a model that makes the calls that next returns, each "name arguments".
// If there are none, it says that it is done.
func callingModel(next func(req *holdfast.ModelRequest) []string) holdfast.Model {
	return holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			calls := next(req)
			for i, c := range calls {
				name, arguments, _ := strings.Cut(c, " ")
				if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: arguments}}, nil) {
					return
				}
			}
			if len(calls) > 0 {
				yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
				return
			}
			yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
		}
	})
}

// alwaysCalling is a model that keeps making the same calls.
func alwaysCalling(calls ...string) holdfast.Model {
	return callingModel(func(*holdfast.ModelRequest) []string { return calls })
}

// countedTool is a tool that counts its calls.
func countedTool(name string, runs *atomic.Int64) holdfast.Tool {
	return holdfast.NewTool(name, "", func(context.Context, map[string]any) (string, error) {
		return fmt.Sprintf("%s %d", name, runs.Add(1)), nil
	})
}
