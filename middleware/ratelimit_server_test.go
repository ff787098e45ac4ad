package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// searcher is an agent that makes several calls at once and then says that it is done.
func searcher(calls int, search func() string, m ...holdfast.Middleware) holdfast.Agent {
	return holdfast.Agent{
		Name: "searcher",
		Tools: []holdfast.Tool{
			holdfast.NewTool("search", "searches", func(context.Context, struct{}) (string, error) {
				return search(),
					nil
			}),
		},
		Middleware: m,
		Model: holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
					return
				}
				for i := range calls {
					if !yield(holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: "search", Arguments: "{}"}},
						nil) {
						return
					}
				}
				yield(holdfast.Delta{Finish: holdfast.FinishToolCalls}, nil)
			}
		}),
	}
}

// counted returns the number of results that begin with a text.
func counted(r *agenttest.Result, begin string) (n int) {
	for _, text := range hooktest.Results(r) {
		if strings.HasPrefix(text, begin) {
			n++
		}
	}
	return n
}

// TestRateLimitOfTwoServers: they count together, and a run gets one notice.
func TestRateLimitOfTwoServers(t *testing.T) {
	t.Parallel()
	noon := func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }
	agent := searcher(5, func() string { return "found" }, middleware.RateLimit(middleware.RateLimitOptions{
		Limit: 7, Window: middleware.Duration(time.Hour), Then: "tell", Now: noon,
	}))
	db := memstore.New()
	servers := []*agenttest.Harness{hooktest.Serve(t, agent, db), hooktest.Serve(t, agent, db)}
	found, told := 0, 0
	for i, s := range servers {
		s.Thread(fmt.Sprint("t", i))
		r := s.Run("go")
		if r.Outcome != agenttest.Success {
			t.Errorf("got %+v", r)
		}
		found += counted(r, "found")
		told += counted(r, "Not run: search may be called 7 times in 1h0m0s, and was. Try again "+
			"at 2026-03-04T13:00:00Z.")
		if got := hooktest.Notices(r, "holdfast.rate_limited"); len(got) != i {
			t.Errorf("server %d: notices %s", i, got)
		}
	}
	if found != 7 || told != 3 {
		t.Errorf("%d found, %d told", found, told)
	}
}

// TestRateLimitEndsARun once all of its calls have results.
func TestRateLimitEndsARun(t *testing.T) {
	t.Parallel()
	s := hooktest.Serve(
		t,
		searcher(2, func() string { return "found" }, middleware.RateLimit(middleware.RateLimitOptions{
			Name: "strict", Limit: 1, Window: middleware.Duration(24 * time.Hour), Then: "end",
		})),
		nil,
	)
	r := s.Run("go")
	if r.Code != codes.RateLimited || !strings.Contains(r.Hint,
		`The rate limit "strict" allows 1 calls of search in 24h0m0s; the next is possible at `) {
		t.Errorf("got %+v", r)
	}
	if counted(r, "found") != 1 || counted(r, "The rate limit") != 1 {
		t.Errorf("results: %+v", r)
	}
}

// TestRateLimitWaitsBesideOtherCalls: while one call waits, the others get their results.
func TestRateLimitWaitsBesideOtherCalls(t *testing.T) {
	t.Parallel()
	// The clock stops a moment before the end of a window until the calls within the
	// limit are done.
	var mu sync.Mutex
	now := time.Date(2026, 3, 4, 12, 0, 59, 990_000_000, time.UTC)
	done := 0
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	search := func() string {
		mu.Lock()
		defer mu.Unlock()
		if done++; done == 2 {
			now = now.Add(time.Second)
		}
		return fmt.Sprint("found ", done)
	}
	limit := middleware.RateLimitOptions{Limit: 2, Window: middleware.Duration(time.Minute), Now: clock}
	s := hooktest.Serve(t, searcher(3, search, middleware.RateLimit(limit)), nil)
	r := s.Run("go")
	if r.Outcome != agenttest.Success || counted(r, "found") != 3 || counted(r, "found 3") != 1 {
		t.Errorf("got %+v", r)
	}
}
