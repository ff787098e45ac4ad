package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// A run whose tools fail twice in a row is ended instead of trying forever.
func ExampleErrorTracking() {
	fetch := holdfast.NewTool("fetch", "Fetches a page.", func(context.Context, struct{}) (string, error) {
		fmt.Println("fetch: the network is down")
		return "", errors.New("the network is down")
	})
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "fetch"}, Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	agent := holdfast.Agent{
		Name: "helper", Model: model, Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{
			middleware.ErrorTracking(middleware.ErrorTrackingOptions{MaxFailingIterations: 2}),
		},
	}
	fmt.Println(strings.Contains(hooktest.RunAgent(agent, "Fetch it."),
		"2 iterations in a row have failed; the limit is 2."))
	// Output:
	// fetch: the network is down
	// fetch: the network is down
	// true
}
