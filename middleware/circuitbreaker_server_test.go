package middleware_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

func TestTheBreakerEndsARunAndAPersonResumesIt(t *testing.T) {
	t.Parallel()
	var searched, looked atomic.Int64
	c := hooktest.Serve(t, holdfast.Agent{
		Name:  "a",
		Model: alwaysCalling(`search {"q":"parcel","n":1}`, `look {}`),
		Tools: []holdfast.Tool{countedTool("search", &searched), countedTool("look", &looked)},
		Middleware: []holdfast.Middleware{
			middleware.CircuitBreaker(middleware.CircuitBreakerOptions{Tools: map[string]int{"look": 0}}),
		},
	}, nil)
	for i := range 2 {
		var got *agenttest.Result
		if i == 0 {
			got = c.Run("where is it?")
		} else {
			got = c.Resume()
		}
		if got.Outcome != agenttest.Failed || got.Code != codes.CircuitOpen {
			t.Fatalf("run %d ended with %+v", i, got)
		}
		for _, want := range []string{"search 3 times in a row", "the limit is 3", `"messages": []`} {
			if !strings.Contains(got.Hint, want) {
				t.Errorf("the error lacks %q: %s", want, got.Hint)
			}
		}
		if n := hooktest.Notices(got, "holdfast.circuit_open"); len(n) != 1 ||
			n[0] != `{"tool":"search","count":3,"limit":3}` {
			t.Errorf("notices: %q", n)
		}
		if r := hooktest.Results(got); len(r) != 6 || !strings.HasPrefix(r[4], "Not started:") ||
			!strings.HasPrefix(r[5], "Not started:") {
			t.Errorf("results: %q", r)
		}
		if s, l, want := searched.Load(), looked.Load(), int64(2*(i+1)); s != want || l != want {
			t.Errorf("searched %d times, looked %d times, want %d", s, l, want)
		}
	}
}

func TestTheBreakerTellsTheModelWhichThenDoesSomethingElse(t *testing.T) {
	t.Parallel()
	var searched atomic.Int64
	model := callingModel(func(req *holdfast.ModelRequest) []string {
		if last := req.Messages[len(req.Messages)-1]; strings.Contains(last.Text, "3 times in a row") {
			return []string{`search {"q":"letter"}`}
		} else if strings.Contains(last.Text, "search 3") {
			return nil
		}
		return []string{`search {"q":"parcel"}`}
	})
	c := hooktest.Serve(t, holdfast.Agent{
		Name: "a", Model: model, Tools: []holdfast.Tool{countedTool("search", &searched)},
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{Then: "tell"})},
	}, nil)
	got := c.Run("where is it?")
	if got.Outcome != agenttest.Success || searched.Load() != 3 ||
		len(hooktest.Notices(got, "holdfast.circuit_open")) != 1 {
		t.Errorf("searched %d times, ended with %+v", searched.Load(), got)
	}
	if r := hooktest.Results(got); len(r) != 4 || !strings.Contains(r[2], "Not run: search has been called 3 times") {
		t.Errorf("results: %q", r)
	}
}

// TestTheBreakerCountsTheFrontendsCalls: each of them ends a run, and here a server too.
func TestTheBreakerCountsTheFrontendsCalls(t *testing.T) {
	t.Parallel()
	c := hooktest.Serve(t, holdfast.Agent{
		Name: "a", Model: alwaysCalling(`confirm {"sure":true}`),
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{})},
	}, nil)
	got := c.Run("do it")
	for range 2 {
		if len(got.FrontendCalls) != 1 {
			t.Fatalf("nothing is pending: %+v", got)
		}
		c.Restart()
		got = c.Deliver(got.FrontendCalls[0], "no")
	}
	if got.Code != codes.CircuitOpen {
		t.Errorf("the third call ended with %+v", got)
	}
}
