package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Error tracking, first with hooks called as the engine does, then on a server.

// Results of calls.
var (
	callWorked = holdfast.CallResult{Result: holdfast.ToolResult{Text: "ok"}}
	callFailed = holdfast.CallResult{Result: holdfast.ToolResult{Text: "no", Failed: true}}
	callDenied = holdfast.CallResult{Result: holdfast.ToolResult{Text: "denied", Failed: true, NotRun: true}}
)

func TestErrorTrackingOptions(t *testing.T) {
	t.Parallel()
	hooktest.WantInvalid(t, "middleware.ErrorTracking", middleware.ErrorTracking,
		map[string]middleware.ErrorTrackingOptions{
			"maxFailingIterations is -1: write 1 or more": {MaxFailingIterations: -1},
		})
}

func TestWhatFailsAnIteration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		calls []holdfast.CallResult
		want  int // from 2
	}{
		{"one of several calls failed", []holdfast.CallResult{callWorked, callFailed, callWorked}, 3},
		{"all failed", []holdfast.CallResult{callFailed, callFailed}, 3},
		{"one failed beside a denied one", []holdfast.CallResult{callDenied, callFailed}, 3},
		{"all worked", []holdfast.CallResult{callWorked, callWorked}, 0},
		{"one worked beside a denied one", []holdfast.CallResult{callDenied, callWorked}, 0},
		{"no calls", nil, 0},
		{"nothing was run", []holdfast.CallResult{callDenied, callDenied}, 2},
	} {
		if got := (middleware.ErrorTrackingState{Failing: 2}).After(tt.calls); got.Failing != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got.Failing, tt.want)
		}
	}
}

func TestErrorTrackingCountsThroughACrash(t *testing.T) {
	t.Parallel()
	h := bare(t, middleware.ErrorTracking(middleware.ErrorTrackingOptions{}))
	for i := range 3 {
		if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{Number: i, Granted: i}); err != nil {
			t.Fatal(err)
		}
		// A process that dies before the commit sees the iteration again.
		lost := bareStored(t, h.m, h.Stored())
		lost.m.AfterIteration(lost.Context(), &holdfast.Iteration{Number: i},
			&holdfast.IterationResult{Calls: []holdfast.CallResult{callFailed}})
		h.m.AfterIteration(h.Context(), &holdfast.Iteration{Number: i},
			&holdfast.IterationResult{Calls: []holdfast.CallResult{callFailed}})
		h.Crash()
	}
	for range 2 { // and so it does when it dies before the run's end is stored
		err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{Number: 3, Granted: 3})
		if hooktest.Code(err) != codes.TooManyErrors ||
			!strings.Contains(err.Error(), "3 iterations in a row have failed; the limit is 3.") {
			t.Fatalf("got %v", err)
		}
		if len(h.Notices) != 1 || h.Notices[0] != `holdfast.too_many_errors {"failures":3,"limit":3}` {
			t.Errorf("notices: %q", h.Notices)
		}
		h.Crash()
	}
	if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{Number: 3}); err != nil {
		t.Errorf("a run that a person has resumed: %v", err)
	}
	if s := h.State("holdfast.error_tracking"); s != `{"failing":0}` {
		t.Errorf("stored: %s", s)
	}
}

func TestErrorTrackingTrouble(t *testing.T) {
	t.Parallel()
	h := bareStored(t, middleware.ErrorTracking(middleware.ErrorTrackingOptions{MaxFailingIterations: 1}),
		`{"states":{"holdfast.error_tracking":{"failing":1}}}`)
	if err := h.m.BeforeIteration(h.Context(),
		&holdfast.Iteration{Granted: 1}); hooktest.Code(err) != codes.TooManyErrors ||
		!strings.Contains(err.Error(), "An iteration has failed") {
		t.Errorf("got %v", err)
	}
	h.NotifyError = errors.New("the log is closed")
	if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{Granted: 1}); !errors.Is(err, h.NotifyError) {
		t.Errorf("a notice that fails: %v", err)
	}
	h = bareStored(t, h.m, `{"states":{"holdfast.error_tracking":7}}`)
	h.m.AfterIteration(h.Context(), &holdfast.Iteration{}, &holdfast.IterationResult{})
	if err := h.m.BeforeIteration(h.Context(), &holdfast.Iteration{}); hooktest.Code(err) != codes.StateUnreadable {
		t.Errorf("a state that cannot be read: %v", err)
	}
	// A count below zero would put off the limit.
	h = bareStored(t, h.m, `{"states":{"holdfast.error_tracking":{"failing":-5}}}`)
	hooktest.WantCode(t, h.m.BeforeIteration(h.Context(), &holdfast.Iteration{}), codes.StateUnreadable,
		"holdfast.error_tracking", "failing is -5")
}

// flaky is a tool that works in the listed calls and fails in all others.
func flaky(runs *atomic.Int64, works ...int64) holdfast.Tool {
	return holdfast.NewTool("fetch", "", func(context.Context, map[string]any) (string, error) {
		n := runs.Add(1)
		for _, w := range works {
			if n == w {
				return "fetched", nil
			}
		}
		return "", fmt.Errorf("try %d failed", n)
	})
}

func TestErrorTrackingEndsARunAndAPersonResumesIt(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	c := hooktest.Serve(t, holdfast.Agent{
		Name: "a", Model: alwaysCalling("fetch {}"), Tools: []holdfast.Tool{flaky(&runs, 3)},
		Middleware: []holdfast.Middleware{middleware.ErrorTracking(middleware.ErrorTrackingOptions{})},
	}, nil)
	got := c.Run("fetch it") // fails twice, works, fails three times
	if got.Outcome != agenttest.Failed || got.Code != codes.TooManyErrors ||
		!strings.Contains(got.Hint, "3 iterations in a row have failed; the limit is 3. To continue anyway") {
		t.Errorf("ended with %+v", got)
	}
	if n := hooktest.Notices(got, "holdfast.too_many_errors"); len(n) != 1 || runs.Load() != 6 {
		t.Errorf("%d runs, notices %q", runs.Load(), n)
	}
	got = c.Resume() // fails three more times
	if got.Code != codes.TooManyErrors || runs.Load() != 9 {
		t.Errorf("%d runs, ended with %+v", runs.Load(), got)
	}
}

// TestErrorTrackingGoesOnAfterARestart: the count is stored with the run, which waits for
// a person between two failures here.
func TestErrorTrackingGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	ask := holdfast.NewTool("ask", "", func(ctx context.Context, _ map[string]any) (string, error) {
		if holdfast.CallFrom(ctx).Answer == nil {
			return "", &holdfast.Interrupt{Message: "Well?"}
		}
		return "", errors.New("the answer does not help")
	})
	model := callingModel(func(req *holdfast.ModelRequest) []string {
		if req.Iteration == 1 {
			return []string{"ask {}"}
		}
		return []string{"fetch {}"}
	})
	c := hooktest.Serve(t, holdfast.Agent{
		Name:  "a",
		Model: model,
		Tools: []holdfast.Tool{flaky(&runs), ask},
		Middleware: []holdfast.Middleware{
			middleware.ErrorTracking(middleware.ErrorTrackingOptions{MaxFailingIterations: 2}),
		},
	}, nil)
	q := hooktest.Question(t, c.Run("fetch it"))
	c.Restart()
	if end := c.Answer(q, json.RawMessage(`{}`)); end.Code != codes.TooManyErrors || runs.Load() != 1 {
		t.Errorf("%d runs, ended with %+v", runs.Load(), end)
	}
}
