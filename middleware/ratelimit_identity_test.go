package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// A rate limit counts a call once, however often it starts again, and every other call
// too, whatever ids clients and models give it.

// lasting returns a limit whose window does not end during a test.
func lasting(o middleware.RateLimitOptions) holdfast.Middleware {
	o.Window = middleware.Duration(50 * 365 * 24 * time.Hour)
	return middleware.RateLimit(o)
}

// asker is an agent whose model calls search under the id call_0. The tool asks a person
// first, and counts how often it was allowed.
func asker(ran *atomic.Int64, m holdfast.Middleware) holdfast.Agent {
	search := holdfast.NewTool("search", "searches", func(ctx context.Context, _ struct{}) (string, error) {
		if holdfast.CallFrom(ctx).Answer == nil {
			return "", &holdfast.Interrupt{Message: "may I?"}
		}
		return fmt.Sprint("found ", ran.Add(1)), nil
	})
	return holdfast.Agent{
		Tools:      []holdfast.Tool{search},
		Middleware: []holdfast.Middleware{m},
		Model: hooktest.Scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
			if req.Messages[len(req.Messages)-1].Role == holdfast.RoleTool {
				return []holdfast.Delta{{Text: "done", Finish: holdfast.FinishStop}}
			}
			return []holdfast.Delta{
				{
					Call:   &holdfast.CallDelta{ID: "call_0", Name: "search", Arguments: "{}"},
					Finish: holdfast.FinishToolCalls,
				},
			}
		}),
	}
}

// yes is the body that allows what a thread asks.
func yes(t *testing.T, h *agenttest.Harness, thread string) map[string]any {
	t.Helper()
	var info struct{ Interrupts []struct{ ID string } }
	text := hooktest.Ask(t, h, http.MethodGet, "/threads/"+thread, nil)
	if err := json.Unmarshal([]byte(text), &info); err != nil || len(info.Interrupts) != 1 {
		t.Fatalf("%s asks %v, %v", thread, info.Interrupts, err)
	}
	return map[string]any{
		"resume": []any{map[string]any{"interruptId": info.Interrupts[0].ID, "status": "resolved", "payload": true}},
	}
}

// TestRateLimitOutlivesItsThread: who deletes a thread and makes it again is counted
// again, with any store.
func TestRateLimitOutlivesItsThread(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t).URL()
	for name, url := range map[string]string{
		"memory": "memory:", "file": "file:" + filepath.Join(t.TempDir(), "data"), "redis": redis,
	} {
		t.Run(name, func(t *testing.T) {
			const limit, tries = 3, 10
			db := hooktest.Open(t, url)
			agent := holdfast.Agent{Model: hooktest.CallThenSay("none"), Middleware: []holdfast.Middleware{
				lasting(middleware.RateLimitOptions{Model: true, Per: []string{"user"}, Limit: 2 * limit, Then: "end"}),
			}}
			h := hooktest.Serve(t, agent, db)
			ended := map[bool]int{} // by whether it was limited
			for range tries {
				ended[strings.Contains(hooktest.Post(t, h, "same", "r1", nil), codes.RateLimited)]++
				hooktest.Ask(t, h, http.MethodDelete, "/threads/same", nil)
			}
			if ended[false] != limit || ended[true] != tries-limit {
				t.Errorf("of the model's calls: %v", ended)
			}
			var ran atomic.Int64
			tools := lasting(middleware.RateLimitOptions{Name: "tools", Limit: limit, Then: "tell"})
			h = hooktest.Serve(t, asker(&ran, tools), db)
			for range tries {
				if strings.Contains(hooktest.Post(t, h, "same", "r1", nil), `"type":"interrupt"`) {
					hooktest.Post(t, h, "same", "r2", yes(t, h, "same"))
				}
				hooktest.Ask(t, h, http.MethodDelete, "/threads/same", nil)
			}
			if got := ran.Load(); got != limit {
				t.Errorf("the tool ran %d times, the limit is %d", got, limit)
			}
		})
	}
}

// TestRateLimitAfterTravels: a call that is made again because the thread went back, or
// in a fork, is another one.
func TestRateLimitAfterTravels(t *testing.T) {
	t.Parallel()
	const limit = 3
	for name, again := range map[string]func(h *agenttest.Harness, question string, n int) (thread string){
		"rewind": func(h *agenttest.Harness, question string, n int) string {
			hooktest.Rewind(t, h, "t", question)
			return "t"
		},
		"fork": func(h *agenttest.Harness, _ string, n int) string {
			fork := fmt.Sprint("f", n)
			hooktest.Fork(t, h, "t", fork)
			return fork
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int64
			h := hooktest.Serve(t, asker(&ran, lasting(middleware.RateLimitOptions{Limit: limit, Then: "tell"})), nil)
			hooktest.Question(t, h.Run("go"))
			question := hooktest.Checkpoint(t, h, "t")
			for n := range 2 * limit {
				thread := again(h, question, n)
				hooktest.Post(t, h, thread, fmt.Sprint("on", n), yes(t, h, thread))
			}
			// The call that asked was counted, too.
			if got := ran.Load(); got != limit-1 {
				t.Errorf("the tool ran %d times, want %d", got, limit-1)
			}
		})
	}
}

// TestRateLimitCountsOnce: the call that starts again in the same place has its
// reservation; one of the same name elsewhere needs another.
func TestRateLimitCountsOnce(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	h.At.Incarnation = "first"
	tools := lasting(middleware.RateLimitOptions{Limit: 100})
	models := lasting(middleware.RateLimitOptions{Name: "models", Model: true, Limit: 100})
	used := func() [2]int64 {
		begin := time.Now().UTC().Truncate(50 * 365 * 24 * time.Hour).Format(time.RFC3339)
		return [2]int64{h.Used("rate/default/" + begin), h.Used("rate/models/" + begin)}
	}
	for i, elsewhere := range []func(){
		func() {},
		func() { h.At.Incarnation = "second" }, // deleted and made again, or a fork
		func() { h.At.Rewinds++ },
		func() { h.At.Principal.User = "bob" },
		func() { h.At.Thread = "other" },
	} {
		elsewhere()
		for range 3 {
			call := holdfast.ToolCall{ID: "call_0", Name: "search", Key: "key"}
			_, err := tools.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
				return holdfast.ToolResult{}, nil
			})(h.Context(), nil, call)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Ask(models, hooktest.Says(holdfast.Delta{Finish: holdfast.FinishStop})); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := used(), [2]int64{int64(i + 1), int64(i + 1)}; got != want {
			t.Errorf("in place %d: %d calls of tools and models are counted, want %d", i, got, want)
		}
	}
}
