package main

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
)

// TestCountShelves: people see each shelf.
func TestCountShelves(t *testing.T) {
	tool := CountShelves(func(_ context.Context, shelf string) (int, error) { return len(shelf), nil })
	ctx, saw := agenttest.Context(t)
	call := holdfast.ToolCall{ID: "c1", Name: "count_shelves", Arguments: json.RawMessage(`{"shelves":["a","bc"]}`)}
	result, err := tool.Call(holdfast.ContextWithCall(ctx, call, nil), call)
	if err != nil || result.Text != "There are 3 items." {
		t.Errorf("%q, %v", result.Text, err)
	}
	if steps := saw.Steps(); !slices.Equal(steps, []string{"shelf a", "shelf bc"}) {
		t.Errorf("the steps were %q", steps)
	}
	shown := saw.Shown()
	if last := string(shown[len(shown)-1].Content); len(shown) != 3 ||
		last != `{"title":"Counting the shelves","done":2,"total":2}` {
		t.Errorf("%d times shown, at last %s", len(shown), last)
	}
}
