package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
)

// A shop lets its agent look at orders, refund little by itself and much never; for
// what is between, a person is asked, who may say yes for the whole thread.
func ExampleToolPermission() {
	limit := func(n float64) *float64 { return &n }
	agent := holdfast.Agent{
		Name: "shop",
		Middleware: []holdfast.Middleware{middleware.ToolPermission(middleware.ToolPermissionOptions{
			Rules: []middleware.PermissionRule{
				{Tool: "get_*", Then: middleware.PermissionAllow},
				{Tool: "refund", Args: map[string]middleware.Condition{"amount": {Below: limit(20)}}, Then: middleware.PermissionAllow},
				{Tool: "refund", Args: map[string]middleware.Condition{"amount": {Below: limit(500)}}, Then: middleware.PermissionAsk,
					Remember: []middleware.PermissionScope{middleware.PermissionThread}},
				{Tool: "refund", Then: middleware.PermissionDeny, Reason: "refunds of 500 and more are made by the accountants."},
			},
			Default: middleware.PermissionAsk,
		})},
	}

	// A server calls the hooks; here is what they decide about three calls.
	ctx := holdfast.ContextWithRun(context.Background(), &holdfast.RunContext{States: holdfast.NewLiveStates(nil)})
	batch := holdfast.NewBatch(&holdfast.Iteration{Agent: agent.Name}, []holdfast.ToolCall{
		{ID: "c1", Name: "refund", Arguments: json.RawMessage(`{"amount":12}`)},
		{ID: "c2", Name: "refund", Arguments: json.RawMessage(`{"amount":120}`)},
		{ID: "c3", Name: "refund", Arguments: json.RawMessage(`{"amount":1200}`)},
	})
	if err := agent.Middleware[0].Batch(ctx, batch); err != nil {
		fmt.Println(err)
		return
	}
	for i, call := range batch.Calls {
		switch result, question := batch.Decided(i); {
		case result != nil:
			fmt.Println(string(call.Arguments), "-", result.Text)
		case question != nil:
			fmt.Println(string(call.Arguments), "-", question.Message)
		default:
			fmt.Println(string(call.Arguments), "- runs")
		}
	}
	// Output:
	// {"amount":12} - runs
	// {"amount":120} - May the agent call refund?
	// {"amount":1200} - Not allowed: refunds of 500 and more are made by the accountants.
}
