package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// A search service allows each user two calls an hour. The model is told about the third
// one, which does not wait.
func ExampleRateLimit() {
	limit := middleware.RateLimit(middleware.RateLimitOptions{
		Name: "search", Tools: []string{"web_*"}, Per: []string{"user"},
		Limit: 2, Window: middleware.Duration(time.Hour), Then: "tell",
		Now: func() time.Time { return time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC) }, // for the example
	})

	search := holdfast.NewTool("web_search", "Searches the web.", func(context.Context, struct{}) (string, error) {
		return "found", nil
	})
	curious := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			last := req.Messages[len(req.Messages)-1]
			if strings.HasPrefix(last.Text, "Not run") {
				fmt.Println(last.Text)
				yield(holdfast.Delta{Text: "I'll look again later.", Finish: holdfast.FinishStop}, nil)
				return
			}
			yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "web_search"}, Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	hooktest.RunAgent(holdfast.Agent{
		Name: "helper", Model: curious, Tools: []holdfast.Tool{search}, Middleware: []holdfast.Middleware{limit},
	}, "What is new?")
	// Output: Not run: web_search may be called 2 times in 1h0m0s, and was. Try again at 2026-03-04T13:00:00Z.
}
