package middleware

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Timeouts of tools that obey their context and of tools that do not, in bubbles in which
// time passes at once.

// stub is a tool that calls its function.
type stub struct {
	spec holdfast.ToolSpec
	f    func(ctx context.Context) (holdfast.ToolResult, error)
}

func (s stub) Spec() holdfast.ToolSpec { return s.spec }

func (s stub) Call(ctx context.Context, _ holdfast.ToolCall) (holdfast.ToolResult, error) {
	return s.f(ctx)
}

func run(ctx context.Context, t holdfast.Tool, chain ...holdfast.Middleware) (holdfast.ToolResult, error) {
	handler := func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		return tool.Call(ctx, call)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		handler = chain[i].Tool(handler)
	}
	return handler(ctx, t, holdfast.ToolCall{Name: "slow_tool", ID: "c1", Thread: "t"})
}

func TestToolTimeoutOfAToolThatObeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		tool := stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
			<-ctx.Done()
			return holdfast.ToolResult{}, ctx.Err()
		}}
		begun := time.Now()
		result, err := run(t.Context(), tool, ToolTimeout(time.Minute, &group))
		if err != nil || !result.Failed || !strings.Contains(result.Text, "slow_tool did not finish within 1m0s") {
			t.Errorf("got %+v, %v", result, err)
		}
		if d := time.Since(begun); d != time.Minute {
			t.Errorf("it took %s", d)
		}
		group.Wait()
	})
}

func TestToolTimeoutGivesUpAToolThatDoesNotObey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		release := make(chan struct{})
		finished := false
		tool := stub{holdfast.ToolSpec{Timeout: time.Second}, func(context.Context) (holdfast.ToolResult, error) {
			<-release
			finished = true
			return holdfast.ToolResult{Text: "too late"}, nil
		}}
		result, err := run(t.Context(), tool, ToolTimeout(time.Hour, &group))
		if err != nil || !result.Failed || !strings.Contains(result.Text, "within 1s") {
			t.Errorf("got %+v, %v", result, err)
		}
		close(release)
		group.Wait()
		if !finished {
			t.Error("the group was done before the straggler was")
		}
	})
}

func TestToolTimeoutLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		m := ToolTimeout(time.Minute, &group)
		ask := &holdfast.Interrupt{Message: "sure?"}
		broken := errors.New("broken")
		tests := []struct {
			name string
			f    func(ctx context.Context) (holdfast.ToolResult, error)
			want holdfast.ToolResult
			err  error
		}{
			{
				"a result",
				func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{Text: "ok"}, nil },
				holdfast.ToolResult{Text: "ok"},
				nil,
			},
			{
				"an error",
				func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{}, broken },
				holdfast.ToolResult{},
				broken,
			},
			{
				"a question",
				func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{}, ask },
				holdfast.ToolResult{},
				ask,
			},
		}
		for _, tt := range tests {
			got, err := run(t.Context(), stub{f: tt.f}, m)
			if got.Text != tt.want.Text || got.Failed || err != tt.err {
				t.Errorf("%s: got %+v, %v", tt.name, got, err)
			}
		}
		group.Wait()
	})
}

func TestToolTimeoutWaitsForACancelledTool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		tool := stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
			<-ctx.Done()
			time.Sleep(500 * time.Millisecond) // it cleans up
			return holdfast.ToolResult{Text: "cleaned up"}, nil
		}}
		time.AfterFunc(time.Second, cancel)
		result, err := run(ctx, tool, ToolTimeout(time.Minute, &group))
		if err != nil || result.Text != "cleaned up" {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

func TestToolTimeoutOfAToolThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	tool := stub{f: func(context.Context) (holdfast.ToolResult, error) {
		runtime.Goexit()
		return holdfast.ToolResult{}, nil
	}}
	if result, err := run(t.Context(), tool, ToolTimeout(time.Minute, new(sync.WaitGroup))); err == nil {
		t.Errorf("got %+v, want an error", result)
	}
}

func TestToolTimeoutWithoutABound(t *testing.T) {
	t.Parallel()
	result, err := run(t.Context(), stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
		_, bounded := ctx.Deadline()
		if bounded {
			return holdfast.ToolResult{}, errors.New("there is a deadline")
		}
		return holdfast.ToolResult{Text: "ok"}, nil
	}}, ToolTimeout(0, new(sync.WaitGroup)))
	if err != nil || result.Text != "ok" {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestPanicsCrossTheBound: a call with a timeout runs in a goroutine of its own, but a
// panic reaches the caller, with the original stack.
func TestPanicsCrossTheBound(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	defer group.Wait()
	defer func() {
		p, ok := recover().(error)
		if !ok || !strings.Contains(p.Error(), "burnt") || !strings.Contains(p.Error(), "TestPanicsCrossTheBound") {
			t.Errorf("the panic is %v", p)
		}
	}()
	_, _ = run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) { panic("burnt") }},
		ToolTimeout(time.Minute, &group))
}

// TestLateErrorsAreTimeouts: a tool that returns an error of its own when its context is
// cancelled took too long, whatever the error says.
func TestLateErrorsAreTimeouts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := tookTooLong()
	cancel(cause)
	done := make(chan returned, 1)
	done <- returned{err: fmt.Errorf("socket closed")}
	result, err := toolBound{cause: cause, limit: time.Hour}.await(ctx, "slow_tool", done)
	if err != nil || !result.Failed || !strings.Contains(result.Text, "slow_tool did not finish within 1h0m0s") {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestToolTimeoutOfSeveral: a bound does not claim the time that another one, further
// outside, has ended. Only that one knows how long it was.
func TestToolTimeoutOfSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		tool := stub{f: func(ctx context.Context) (holdfast.ToolResult, error) {
			<-ctx.Done()
			return holdfast.ToolResult{}, ctx.Err()
		}}
		outside, cancel := context.WithTimeoutCause(t.Context(), time.Second, tookTooLong())
		defer cancel()
		result, err := run(outside, tool, ToolTimeout(time.Minute, &group))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v; want the tool's own error", result, err)
		}
		group.Wait()
	})
}

// TestToolTimeoutLeavesDoubt: a call that must not be made twice has not failed when its time
// is up: nobody knows what became of it, whether the tool obeys or not. The tool's own words
// about that are passed on. A contract has only been handed out, or not.
func TestToolTimeoutLeavesDoubt(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context) (holdfast.ToolResult, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return holdfast.ToolResult{}, nil
	}
	obeys := func(ctx context.Context) (holdfast.ToolResult, error) {
		<-ctx.Done()
		return holdfast.ToolResult{}, ctx.Err()
	}
	knows := func(ctx context.Context) (holdfast.ToolResult, error) {
		<-ctx.Done()
		return holdfast.ToolResult{}, fmt.Errorf("sent: %w", holdfast.ErrOutcomeUnknown)
	}
	for name, tt := range map[string]struct {
		spec    holdfast.ToolSpec
		f       func(context.Context) (holdfast.ToolResult, error)
		unknown bool
	}{
		"once":              {holdfast.ToolSpec{Effect: holdfast.EffectOnce}, hangs, true},
		"once, obeys":       {holdfast.ToolSpec{Effect: holdfast.EffectOnce}, obeys, true},
		"once, knows":       {holdfast.ToolSpec{Effect: holdfast.EffectOnce}, knows, true},
		"query":             {holdfast.ToolSpec{Effect: holdfast.EffectQuery}, hangs, true},
		"idempotent":        {holdfast.ToolSpec{Effect: holdfast.EffectIdempotent}, hangs, false},
		"pure":              {holdfast.ToolSpec{Effect: holdfast.EffectPure}, obeys, false},
		"without an effect": {holdfast.ToolSpec{}, hangs, false},
		"a contract": {holdfast.ToolSpec{Effect: holdfast.EffectOnce, Outside: &holdfast.Outside{}}, hangs,
			false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var group sync.WaitGroup
			begun := time.Now()
			result, err := run(t.Context(), stub{tt.spec, tt.f}, ToolTimeout(time.Minute, &group))
			if d := time.Since(begun); d != time.Minute {
				t.Errorf("%s: it took %s", name, d)
			}
			if got := errors.Is(err, holdfast.ErrOutcomeUnknown); got != tt.unknown ||
				!tt.unknown && (err != nil || !result.Failed) {
				t.Errorf("%s: got %+v, %v", name, result, err)
			}
			group.Wait()
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := tookTooLong()
	cancel(cause)
	late := toolBound{cause: cause, limit: time.Hour, unrepeatable: true}
	for _, own := range []error{fmt.Errorf("sent: %w", holdfast.ErrOutcomeUnknown), &holdfast.Interrupt{},
		&holdfast.EndRun{Err: holdfast.Errorf("x", "The end.")}, fmt.Errorf("no: %w", holdfast.ErrArguments)} {
		done := make(chan returned, 1)
		done <- returned{err: own}
		if _, err := late.await(ctx, "slow_tool", done); err != own {
			t.Errorf("%v became %v", own, err)
		}
	}
}
