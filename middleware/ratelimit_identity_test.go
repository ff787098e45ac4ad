package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/redistest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/internal/hooktest"
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
func yes(t *testing.T, s *hooktest.Server, thread string) map[string]any {
	t.Helper()
	var info struct{ Interrupts []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.Get("/threads/"+thread)), &info); err != nil || len(info.Interrupts) != 1 {
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
	for name, store := range map[string]func() string{
		"memory": func() string { return "memory:" },
		"file":   func() string { return "file:" + filepath.Join(t.TempDir(), "data") },
		"redis":  func() string { return redis },
	} {
		t.Run(name, func(t *testing.T) {
			const limit, tries = 3, 10
			agent := holdfast.Agent{Model: hooktest.CallThenSay("none"), Middleware: []holdfast.Middleware{
				lasting(middleware.RateLimitOptions{Model: true, Per: []string{"user"}, Limit: 2 * limit, Then: "end"}),
			}}
			s := hooktest.Serve(t, agent, hooktest.In(store()))
			ended := map[string]int{}
			for range tries {
				end := s.Post("same", "r1", nil).Last()
				ended[end.Type+end.Code]++
				s.Delete("same")
			}
			if ended["RUN_FINISHED"] != limit || ended["RUN_ERROR"+codes.RateLimited] != tries-limit {
				t.Errorf("of the model's calls: %v", ended)
			}
			var ran atomic.Int64
			s = hooktest.Serve(
				t,
				asker(&ran, lasting(middleware.RateLimitOptions{Name: "tools", Limit: limit, Then: "tell"})),
				hooktest.In(store()),
			)
			for range tries {
				if s.Post("same", "r1", nil).Last().Outcome.Type == "interrupt" {
					s.Post("same", "r2", yes(t, s, "same"))
				}
				s.Delete("same")
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
	for name, again := range map[string]func(s *hooktest.Server, question string, n int) (thread string){
		"rewind": func(s *hooktest.Server, question string, n int) string {
			s.Rewind("t", question)
			return "t"
		},
		"fork": func(s *hooktest.Server, _ string, n int) string {
			fork := fmt.Sprint("f", n)
			s.Fork("t", fork)
			return fork
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int64
			s := hooktest.Serve(t, asker(&ran, lasting(middleware.RateLimitOptions{Limit: limit, Then: "tell"})))
			s.Post("t", "r0", nil).Question(t)
			question := s.Checkpoint("t")
			for n := range 2 * limit {
				thread := again(s, question, n)
				s.Post(thread, fmt.Sprint("on", n), yes(t, s, thread))
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
