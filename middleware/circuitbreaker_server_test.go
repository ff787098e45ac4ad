package middleware_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/internal/hooktest"
)

func TestTheBreakerEndsARunAndAPersonResumesIt(t *testing.T) {
	t.Parallel()
	var searched, looked atomic.Int64
	c := hooktest.Converse(t, holdfast.Agent{
		Name:  "a",
		Model: alwaysCalling(`search {"q":"parcel","n":1}`, `look {}`),
		Tools: []holdfast.Tool{countedTool("search", &searched), countedTool("look", &looked)},
		Middleware: []holdfast.Middleware{
			middleware.CircuitBreaker(middleware.CircuitBreakerOptions{Tools: map[string]int{"look": 0}}),
		},
	})
	for i := range 2 {
		var got hooktest.Stream
		if i == 0 {
			got = c.Say("where is it?")
		} else {
			got = c.GoOn()
		}
		end := got.Last()
		if end.Type != "RUN_ERROR" || end.Code != codes.CircuitOpen {
			t.Fatalf("run %d ended with %+v", i, end)
		}
		for _, want := range []string{"search 3 times in a row", "the limit is 3", `"messages": []`} {
			if !strings.Contains(end.Hint(), want) {
				t.Errorf("the error lacks %q: %s", want, end.Hint())
			}
		}
		if n := got.Notices("holdfast.circuit_open"); len(n) != 1 || n[0] != `{"tool":"search","count":3,"limit":3}` {
			t.Errorf("notices: %q", n)
		}
		if r := got.Results(); len(r) != 6 || !strings.HasPrefix(r[4], "Not started:") ||
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
	c := hooktest.Converse(t, holdfast.Agent{
		Name: "a", Model: model, Tools: []holdfast.Tool{countedTool("search", &searched)},
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{Then: "tell"})},
	})
	got := c.Say("where is it?")
	if got.Last().Type != "RUN_FINISHED" || searched.Load() != 3 || len(got.Notices("holdfast.circuit_open")) != 1 {
		t.Errorf("searched %d times, ended with %+v", searched.Load(), got.Last())
	}
	if r := got.Results(); len(r) != 4 || !strings.Contains(r[2], "Not run: search has been called 3 times") {
		t.Errorf("results: %q", r)
	}
}

// TestTheBreakerCountsTheFrontendsCalls: each of them ends a run, and here a server too.
func TestTheBreakerCountsTheFrontendsCalls(t *testing.T) {
	t.Parallel()
	c := hooktest.Converse(t, holdfast.Agent{
		Name: "a", Model: alwaysCalling(`confirm {"sure":true}`),
		Middleware: []holdfast.Middleware{middleware.CircuitBreaker(middleware.CircuitBreakerOptions{})},
	}, hooktest.In("file:"+t.TempDir()+"/data"))
	got := c.Say("do it")
	for range 2 {
		pending := got.Last().Outcome.PendingToolCallIDs
		if len(pending) != 1 {
			t.Fatalf("nothing is pending: %+v", got.Last())
		}
		c.Restart()
		got = c.Deliver(pending[0], "no")
	}
	if got.Last().Code != codes.CircuitOpen {
		t.Errorf("the third call ended with %+v", got.Last())
	}
}
