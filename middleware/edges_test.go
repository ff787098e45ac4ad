package middleware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// TestOptionsThatCannotBe: a file's are an error, a program's a panic.
func TestOptionsThatCannotBe(t *testing.T) {
	wrong := map[string]string{"circuitBreaker": `{"maxIdenticalCalls": -1}`, "rateLimit": `{"limit": 1, "window": "soon"}`}
	for _, k := range Kinds() {
		options, ok := wrong[k.Name]
		if !ok {
			continue
		}
		delete(wrong, k.Name)
		if _, err := k.New([]byte(options)); err == nil || !strings.Contains(err.Error(), "maxIdenticalCalls") && !strings.Contains(err.Error(), `"soon" is not a duration`) {
			t.Errorf("%s: got %v", k.Name, err)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("there are no kinds for %v", wrong)
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "middleware.CircuitBreaker: maxIdenticalCalls") {
			t.Errorf("the panic says %s", text)
		}
	}()
	CircuitBreaker(CircuitBreakerOptions{MaxIdenticalCalls: -1})
}

// TestNoResultLimit: without a positive limit results stay as they are.
func TestNoResultLimit(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	result, err := run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) { return holdfast.ToolResult{Text: long}, nil }}, ToolResultLimit(0))
	if err != nil || result.Text != long {
		t.Errorf("got %d bytes, %v", len(result.Text), err)
	}
}

// TestPanicsCrossTheBound: a panic under a timeout, which runs in a goroutine of its
// own, is the caller's, with the stack of where it was.
func TestPanicsCrossTheBound(t *testing.T) {
	var group sync.WaitGroup
	defer group.Wait()
	defer func() {
		p, ok := recover().(error)
		if !ok || !strings.Contains(p.Error(), "burnt") || !strings.Contains(p.Error(), "TestPanicsCrossTheBound") {
			t.Errorf("the panic is %v", p)
		}
	}()
	_, _ = run(t.Context(), stub{f: func(context.Context) (holdfast.ToolResult, error) { panic("burnt") }}, ToolTimeout(time.Minute, &group))
}

// TestLateErrorsAreTimeouts: a tool that answers its cancelled context with an error of
// its own took too long, whatever it says.
func TestLateErrorsAreTimeouts(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeout)
	done := make(chan returned, 1)
	done <- returned{err: fmt.Errorf("socket closed")}
	result, err := await(ctx, time.Hour, "slow_tool", done)
	if err != nil || !result.Failed || !strings.Contains(result.Text, "slow_tool did not finish within 1h0m0s") {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestInvalidArgumentsAreNotTriedAgain: only the model can mend them.
func TestInvalidArgumentsAreNotTriedAgain(t *testing.T) {
	calls := 0
	look := holdfast.NewTool("look", "looks", func(context.Context, struct{}) (string, error) { return "", nil })
	handler := Retry(RetryOptions{}).Tool(func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		calls++
		return tool.Call(ctx, call)
	})
	for _, arguments := range []string{`{"colour":"red"}`, `{`} {
		calls = 0
		_, err := handler(t.Context(), look, holdfast.ToolCall{Name: "look", Arguments: []byte(arguments)})
		if !errors.Is(err, holdfast.ErrArguments) || calls != 1 {
			t.Errorf("%s: %d calls, %v", arguments, calls, err)
		}
	}
}
