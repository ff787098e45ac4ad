package permission_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// A shop lets its agent look up orders and refund small amounts by itself, but never
// large ones. In between a person is asked, who can say yes for the whole thread.
func ExampleNew() {
	limit := func(n float64) *float64 { return &n }
	agent := holdfast.Agent{
		Name: "shop",
		Middleware: []holdfast.Middleware{permission.New(permission.Options{
			Rules: []permission.Rule{
				{Tool: "get_*", Then: permission.Allow},
				{
					Tool: "refund",
					Args: map[string]permission.Condition{"amount": {Below: limit(20)}},
					Then: permission.Allow,
				},
				{
					Tool:     "refund",
					Args:     map[string]permission.Condition{"amount": {Below: limit(500)}},
					Then:     permission.Ask,
					Remember: []permission.Scope{permission.ScopeThread},
				},
				{Tool: "refund", Then: permission.Deny, Reason: "refunds of 500 and more are made by the accountants."},
			},
			Default: permission.Ask,
		})},
	}

	// A server calls the hooks; this is what they decide about three calls.
	ctx := state.ContextWith(context.Background(), state.NewLive(nil))
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

func ExampleNew_page() {
	limit := 500.0
	permission.New(permission.Options{
		Default: permission.Ask,
		Rules: []permission.Rule{
			{Tool: "get_*", Then: permission.Allow},
			{Tool: "refund", Args: map[string]permission.Condition{"amount": {Below: &limit}}, Then: permission.Ask},
			{Tool: "refund", Then: permission.Deny},
		},
	})
	// Output:
}

// A tool that takes back what a person has said for all of their threads.
func ExampleForget() {
	type arguments struct {
		Account string `json:"account"`
	}
	forget := holdfast.NewTool("forget_permission", "Has the person asked again.",
		func(ctx context.Context, args arguments) (string, error) {
			ledger, err := store.LedgerFrom(ctx)
			if err != nil {
				return "", err
			}
			at := holdfast.IterationFrom(ctx)
			return "forgotten", permission.Forget(ctx, ledger, at.Principal.Tenant, args.Account)
		})
	ctx := store.ContextWithLedger(context.Background(), memstore.New())
	result, err := forget.Call(ctx, holdfast.ToolCall{Arguments: json.RawMessage(`{"account":"permission/ann/9f2c"}`)})
	fmt.Println(result.Text, err)
	// Output: forgotten <nil>
}
