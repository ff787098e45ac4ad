package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

func fastRetry() middleware.RetryOptions {
	return middleware.RetryOptions{Backoff: 1, Jitter: func(time.Duration) time.Duration { return 0 }}
}

// TestRetriedRun: the person sees one call, one result and the notice, and the state
// changes once.
func TestRetriedRun(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	add := holdfast.NewTool("add", "", func(ctx context.Context, _ struct{}) (string, error) {
		err := holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.Replace("["+strings.Trim(string(state), "[]nul")+",1]", "[,", "[", 1)), nil
		})
		if n := tries.Add(1); n < 3 {
			return "", errors.New("not yet")
		}
		return "added", err
	})
	c := hooktest.Serve(
		t,
		holdfast.Agent{
			Model:      hooktest.CallThenSay("add"),
			Tools:      []holdfast.Tool{add},
			Middleware: []holdfast.Middleware{middleware.Retry(fastRetry())},
		},
		nil,
	)
	stream := hooktest.Text(c.Run("go"))
	if tries.Load() != 3 || strings.Count(stream, "TOOL_CALL_RESULT") != 1 ||
		!strings.Contains(stream, `"snapshot":[1]`) {
		t.Errorf("%d tries: %s", tries.Load(), stream)
	}
	if !strings.Contains(stream, `"name":"holdfast.retried"`) ||
		!strings.Contains(stream, `{"tool":"add","attempts":3,"helped":true}`) {
		t.Errorf("no notice: %s", stream)
	}
}

// TestTimedOutRun: after its attempts, a tool that hangs has a result, and the run
// continues.
func TestTimedOutRun(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	hang := holdfast.NewTool("hang", "", func(ctx context.Context, _ struct{}) (string, error) {
		tries.Add(1)
		<-ctx.Done()
		return "", ctx.Err()
	})
	c := hooktest.Serve(
		t,
		holdfast.Agent{
			Model: hooktest.CallThenSay("hang"),
			Tools: []holdfast.Tool{hang},
			Middleware: []holdfast.Middleware{
				middleware.Retry(fastRetry()),
				middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(5 * time.Millisecond)}),
			},
		},
		nil,
	)
	stream := hooktest.Text(c.Run("go"))
	if tries.Load() != 3 || !strings.Contains(stream,
		`within 5ms and was given up. It may still have taken effect.\n[It was tried 3 times.]`) ||
		!strings.Contains(stream, `"delta":"Got: `) {
		t.Errorf("%d tries: %s", tries.Load(), stream)
	}
}
