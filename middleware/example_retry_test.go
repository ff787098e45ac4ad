package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// A tool that fails now and then is retried; the timeout is for each attempt.
func ExampleRetry() {
	tries := 0
	fetch := holdfast.NewTool("fetch_page", "Fetches a page.", func(context.Context, struct{}) (string, error) {
		if tries++; tries < 3 {
			return "", errors.New("connection reset")
		}
		return "the page", nil
	}, holdfast.WithEffect(holdfast.EffectPure))
	agent := holdfast.Agent{
		Name: "helper", Model: hooktest.CallThenSay("fetch_page"), Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{
			middleware.Retry(middleware.RetryOptions{
				Tools:    []string{"fetch_*"},
				Attempts: 3,
				Backoff:  middleware.Duration(time.Millisecond),
			}),
			middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(10 * time.Second)}),
		},
	}
	stream := hooktest.RunAgent(agent, "What is there?")
	fmt.Println(tries, "tries, helped:", strings.Contains(stream, `{"tool":"fetch_page","attempts":3,"helped":true}`))
	// Output: 3 tries, helped: true
}

// A tool that hangs is cut off, and the model reads about it.
func ExampleTimeout() {
	fetch := holdfast.NewTool("fetch_page", "Fetches a page.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done() // the connection hangs
		return "", ctx.Err()
	})
	agent := holdfast.Agent{
		Name: "helper", Model: hooktest.CallThenSay("fetch_page"), Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{
			middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(20 * time.Millisecond)}),
		},
	}
	fmt.Println(strings.Contains(hooktest.RunAgent(agent, "What is there?"),
		"fetch_page did not finish within 20ms and was given up."))
	// Output: true
}
