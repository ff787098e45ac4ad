package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// After two iterations a person is asked. The run waits for the answer without occupying
// anything.
func ExampleContinuation() {
	step := holdfast.NewTool("step", "Takes a step.", func(context.Context, struct{}) (string, error) {
		fmt.Println("step")
		return "one step further", nil
	})
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "step"}, Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	agent := holdfast.Agent{
		Name: "walker", Model: model, Tools: []holdfast.Tool{step},
		Middleware: []holdfast.Middleware{
			middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 2, MaxTotal: 100, Remember: "run"}),
		},
	}
	fmt.Println(strings.Contains(hooktest.RunAgent(agent, "Walk."), "The agent has used its 2 iterations. Go on?"))
	// Output:
	// step
	// step
	// true
}
