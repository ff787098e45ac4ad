package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// A model that keeps asking for the same thing is stopped before the third call.
func ExampleCircuitBreaker() {
	type query struct {
		Query string `json:"query"`
	}
	search := holdfast.NewTool("search", "Searches the orders.", func(_ context.Context, q query) (string, error) {
		fmt.Println("search:", q.Query)
		return "nothing found", nil
	})
	stubborn := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(
				holdfast.Delta{
					Call:   &holdfast.CallDelta{Name: "search", Arguments: `{"query":"parcel 7"}`},
					Finish: holdfast.FinishToolCalls,
				},
				nil,
			)
		}
	})
	agent := holdfast.Agent{
		Name: "helper", Model: stubborn, Tools: []holdfast.Tool{search},
		Middleware: []holdfast.Middleware{
			middleware.CircuitBreaker(middleware.CircuitBreakerOptions{MaxIdenticalCalls: 3}),
		},
	}
	fmt.Println(strings.Contains(hooktest.RunAgent(agent, "Where is parcel 7?"), codes.CircuitOpen))
	// Output:
	// search: parcel 7
	// search: parcel 7
	// true
}
