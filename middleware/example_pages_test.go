package middleware_test

import (
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
)

// The code on the pages below docs/middleware; a test of the package kinds compares them.
func Example_pages() {
	for _, m := range []holdfast.Middleware{
		middleware.CircuitBreaker(middleware.CircuitBreakerOptions{
			MaxIdenticalCalls: 3, Then: middleware.BreakerEnd, Tools: map[string]int{"poll_job": 0, "charge": 2},
		}),
		middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 20, MaxTotal: 200,
			Remember: middleware.RememberRun}),
		middleware.ErrorTracking(middleware.ErrorTrackingOptions{MaxFailingIterations: 3}),
		middleware.HistoryWindow(middleware.HistoryWindowOptions{
			MaxMessages: 60, MaxBytes: 200_000, Then: middleware.WindowSummarise, SummaryEvery: 20,
		}),
		middleware.LargeResults(middleware.LargeResultsOptions{MaxBytes: 20_000}),
		middleware.RateLimit(middleware.RateLimitOptions{
			Name: "search", Tools: []string{"web_*"}, Per: []string{middleware.PerUser}, Limit: 30,
			Window: middleware.Duration(time.Minute),
			Then:   middleware.RateLimitWait, MaxWait: middleware.Duration(30 * time.Second),
		}),
		middleware.Retry(middleware.RetryOptions{Tools: []string{"search", "fetch_*"}, Attempts: 3,
			On: middleware.RetryOnError}),
		middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(10 * time.Second)}),
	} {
		fmt.Println(m.Name)
	}
	// Output:
	// holdfast.circuit_breaker
	// holdfast.continuation
	// holdfast.error_tracking
	// holdfast.history_window
	// holdfast.large_results
	// holdfast.rate_limit
	// holdfast.retry
	// holdfast.timeout
}
