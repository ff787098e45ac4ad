package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/store"
)

// The rate limit with a ledger in memory and a clock of the test, without a server.

// use calls a tool through the hook of a middleware. Calls with the same id are one call.
func use(h *hooktest.Run, m holdfast.Middleware, tool, id string) (holdfast.ToolResult, error) {
	return useIn(h.Context(), h, m, tool, id)
}

func useIn(ctx context.Context, h *hooktest.Run, m holdfast.Middleware, tool, id string) (holdfast.ToolResult, error) {
	call := holdfast.ToolCall{ID: id, Name: tool, Key: h.At.Thread + "/" + h.At.Run + "/" + id}
	return m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
		return holdfast.ToolResult{Text: "ran"}, nil
	})(ctx, nil, call)
}

// wantRan checks that so many new calls of a tool are run, and the next one is not.
func wantRan(t *testing.T, h *hooktest.Run, m holdfast.Middleware, tool string, times int) {
	t.Helper()
	for i := range times + 1 {
		result, err := use(h, m, tool, fmt.Sprint(h.At, tool, i))
		if err != nil || (result.Text == "ran") != (i < times) {
			t.Errorf("call %d of %s: got %+v, %v", i+1, tool, result, err)
		}
	}
}

func minute(limit int64, change func(*middleware.RateLimitOptions)) middleware.RateLimitOptions {
	o := middleware.RateLimitOptions{Limit: limit, Window: middleware.Duration(time.Minute), Then: "tell"}
	change(&o)
	return o
}

func unchanged(*middleware.RateLimitOptions) {}

func TestRateLimitMistakes(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*middleware.RateLimitOptions){
		"limit is 0": func(o *middleware.RateLimitOptions) { o.Limit = 0 },
		"window is 1ms: write 1s": func(o *middleware.RateLimitOptions) {
			o.Window = middleware.Duration(time.Millisecond)
		},
		"write two rate limits": func(o *middleware.RateLimitOptions) { o.Model, o.Tools = true, []string{"a"} },
		"a model call has no tool": func(o *middleware.RateLimitOptions) {
			o.Model, o.Per = true,
				[]string{"tool"}
		},
		`then is "stop": write "wait"`: func(o *middleware.RateLimitOptions) { o.Then = "stop" },
		`maxWait is 1s with then "tel`: func(o *middleware.RateLimitOptions) {
			o.MaxWait = middleware.Duration(time.Second)
		},
		"onStoreFailure is \"panic\"": func(o *middleware.RateLimitOptions) { o.OnStoreFailure = "panic" },
		"tools has an empty name":     func(o *middleware.RateLimitOptions) { o.Tools = []string{""} },
		`per has "planet"`:            func(o *middleware.RateLimitOptions) { o.Per = []string{"tenant", "planet"} },
	} {
		hooktest.WantInvalid(t, "middleware.RateLimit", middleware.RateLimit,
			map[string]middleware.RateLimitOptions{want: minute(1, change)})
	}
}

// TestRateLimitTells: the model reads when it can try again, and a call that is repeated
// after a crash is not counted again.
func TestRateLimitTells(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	m := middleware.RateLimit(minute(2, func(o *middleware.RateLimitOptions) {
		o.Now = func() time.Time {
			return now
		}
	}))
	for _, id := range []string{"c1", "c1", "c2", "c1"} {
		if result, err := use(h, m, "search", id); err != nil || result.Text != "ran" {
			t.Fatalf("%s: got %+v, %v", id, result, err)
		}
	}
	result, err := use(h, m, "search", "c3")
	if err != nil || !result.Failed || !result.NotRun ||
		result.Text != "Not run: search may be called 2 times in 1m0s, and was. Try again at 2026-03-04T05:07:00Z." {
		t.Errorf("got %+v, %v", result, err)
	}
	h.WantUsed("rate/default/2026-03-04T05:06:00Z", 2)
	now = now.Add(53 * time.Second)
	if result, err := use(h, m, "search", "c3"); err != nil || result.Text != "ran" {
		t.Errorf("in the next window: got %+v, %v", result, err)
	}
	h.WantNotices(`holdfast.rate_limited {"name":"default","tool":"search","limit":2,"window":"1m0s",` +
		`"retryAt":"2026-03-04T05:07:00Z"}`)
}

// TestRateLimitPer: what is counted separately, and which tools are counted.
func TestRateLimitPer(t *testing.T) {
	t.Parallel()
	others := map[string]func(*hooktest.Run){
		"user":   func(h *hooktest.Run) { h.At.Principal.User = "bob" },
		"agent":  func(h *hooktest.Run) { h.At.Agent = "b" },
		"thread": func(h *hooktest.Run) { h.At.Thread = "other" },
		"tenant": func(h *hooktest.Run) { h.At.Principal.Tenant = "globex" },
	}
	for _, per := range []string{"user", "agent", "thread", "tenant"} {
		for other, change := range others {
			h := hooktest.New(t)
			m := middleware.RateLimit(minute(2, func(o *middleware.RateLimitOptions) { o.Per = []string{per, per} }))
			wantRan(t, h, m, "search", 2)
			change(h)
			if other == per || other == "tenant" {
				wantRan(t, h, m, "search", 2)
			} else {
				wantRan(t, h, m, "search", 0)
			}
		}
	}
	h := hooktest.New(t)
	m := middleware.RateLimit(minute(1, func(o *middleware.RateLimitOptions) {
		o.Per, o.Tools, o.Name = []string{"tool"}, []string{"search", "web_*"}, "a/b"
	}))
	for _, tool := range []string{"search", "web_fetch", "web_read"} {
		wantRan(t, h, m, tool, 1)
	}
	for i := range 5 {
		if result, _ := use(h, m, "other", fmt.Sprint(i)); result.Text != "ran" {
			t.Errorf("another tool: got %+v", result)
		}
	}
	wantRan(t, h, middleware.RateLimit(minute(1, unchanged)), "search", 1) // of another name
}

// TestRateLimitEnds: the run ends with a reason.
func TestRateLimitEnds(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := middleware.RateLimit(minute(1, func(o *middleware.RateLimitOptions) { o.Then = "end" }))
	if _, err := use(h, m, "search", "c1"); err != nil {
		t.Fatal(err)
	}
	result, err := use(h, m, "search", "c2")
	var end *holdfast.EndRun
	if !errors.As(err, &end) || !result.NotRun {
		t.Fatalf("got %+v, %v", result, err)
	}
	hooktest.WantCode(t, end, codes.RateLimited,
		`The rate limit "default" allows 1 calls of search in 1m0s; the next is possible at `)
}

// TestRateLimitOfModelCalls: every attempt is counted, but not again if another process
// repeats it.
func TestRateLimitOfModelCalls(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := middleware.RateLimit(minute(2, func(o *middleware.RateLimitOptions) { o.Model = true }))
	done := hooktest.Says(holdfast.Delta{Finish: holdfast.FinishStop})
	for _, attempt := range []int{0, 0, 1} {
		if err := h.Try(m, done, attempt); err != nil {
			t.Fatal(err)
		}
	}
	h.Next()
	hooktest.WantCode(t, h.Ask(m, done), codes.RateLimited, "allows 2 model calls in 1m0s", `"messages": []`)
	if m.Tool != nil {
		t.Error("tools are counted, too")
	}
}

// TestRateLimitWaits: calls that wait go ahead in the next window; those that find it
// full are told after the longest wait.
func TestRateLimitWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hooktest.New(t)
		time.Sleep(20 * time.Second) // of the first window
		m := middleware.RateLimit(middleware.RateLimitOptions{Limit: 2, Window: middleware.Duration(time.Minute)})
		begun := time.Now()
		var mu sync.Mutex
		ran, told := map[time.Duration]int{}, map[time.Duration]int{}
		var group sync.WaitGroup
		run := m.Run(func(ctx context.Context, _ *holdfast.Iteration) (string, error) {
			for i := range 6 {
				group.Go(func() {
					result, err := useIn(ctx, h, m, "search", fmt.Sprint(i))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if result.NotRun {
						told[time.Since(begun)]++
					} else {
						ran[time.Since(begun)]++
					}
				})
			}
			group.Wait()
			return "success", nil
		})
		if _, err := run(h.Context(), &h.At); err != nil {
			t.Fatal(err)
		}
		if ran[0] != 2 || ran[40*time.Second] != 2 || told[40*time.Second] != 2 {
			t.Errorf("ran %v, told %v", ran, told)
		}
		if len(h.Notices) != 2 { // one for each window
			t.Errorf("notices: %q", h.Notices)
		}
	})
}

// TestRateLimitWaitsWithinBounds: no call waits for a window that it would not live to
// see.
func TestRateLimitWaitsWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hooktest.New(t)
		long := middleware.RateLimitOptions{
			Limit:   1,
			Window:  middleware.Duration(time.Hour),
			MaxWait: middleware.Duration(time.Minute),
		}
		m := middleware.RateLimit(long)
		wantRan(t, h, m, "search", 1) // the second is told at once
		long.MaxWait = 0              // a minute, because who waits holds a run's place
		m = middleware.RateLimit(long)
		if result, err := use(h, m, "search", "a"); err != nil || !result.NotRun {
			t.Errorf("by default: got %+v, %v", result, err)
		}
		long.MaxWait = long.Window
		m = middleware.RateLimit(long)
		begun := time.Now()

		bounded, stop := context.WithTimeout(h.Context(), time.Minute)
		defer stop()
		if result, err := useIn(bounded, h, m, "search", "b"); err != nil || !result.NotRun {
			t.Errorf("with a timeout: got %+v, %v", result, err)
		}
		if d := time.Since(begun); d != 0 {
			t.Errorf("it waited %s", d)
		}

		reason := errors.New("enough")
		cancelled, cancel := context.WithCancelCause(h.Context())
		time.AfterFunc(time.Minute, func() { cancel(reason) })
		if result, err := useIn(cancelled, h, m, "search", "c"); !errors.Is(err, reason) || !result.NotRun {
			t.Errorf("cancelled while it waits: got %+v, %v", result, err)
		}
		if _, err := useIn(cancelled, h, m, "search", "d"); !errors.Is(err, reason) {
			t.Errorf("cancelled before: got %v", err)
		}
		if d := time.Since(begun); d != time.Minute {
			t.Errorf("it waited %s", d)
		}
	})
}

// TestRateLimitWithoutAStore: calls are allowed with one notice for the run, or they are
// denied.
func TestRateLimitWithoutAStore(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	h.Ledger = &hooktest.Failing{Ledger: h.Ledger, Reserves: -1}
	done := hooktest.Says(holdfast.Delta{Finish: holdfast.FinishStop})
	m := middleware.RateLimit(minute(1, unchanged))
	run := m.Run(func(ctx context.Context, _ *holdfast.Iteration) (string, error) {
		for _, id := range []string{"a", "b", "c"} {
			if result, err := useIn(ctx, h, m, "search", id); err != nil || result.Text != "ran" {
				t.Errorf("got %+v, %v", result, err)
			}
		}
		return "success", nil
	})
	if _, err := run(h.Context(), &h.At); err != nil {
		t.Fatal(err)
	}
	h.WantNotices(`holdfast.rate_limit_unchecked {"name":"default","tool":"search","limit":1,"window":"1m0s"}`)

	deny := func(o *middleware.RateLimitOptions) { o.OnStoreFailure = "deny" }
	result, err := use(h, middleware.RateLimit(minute(1, deny)), "search", "d")
	if err != nil || !result.NotRun || !strings.Contains(result.Text, "could not be checked") {
		t.Errorf("got %+v, %v", result, err)
	}
	m = middleware.RateLimit(minute(1, func(o *middleware.RateLimitOptions) { deny(o); o.Model = true }))
	if err := h.Ask(m, done); !errors.Is(err, hooktest.ErrNoStore) {
		t.Errorf("the cause is not in %v", err)
	} else {
		hooktest.WantCode(t, err, codes.StoreUnavailable, "The rate limit could not be checked")
	}
	if err := h.Ask(middleware.RateLimit(minute(1, func(o *middleware.RateLimitOptions) { o.Model = true })),
		done); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

// TestRateLimitCannotCount outside of a run, or with names that no ledger accepts.
func TestRateLimitCannotCount(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := middleware.RateLimit(minute(1, unchanged))
	if _, err := useIn(t.Context(), h, m, "search", "a"); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("got %v", err)
	}
	h.At.Principal.Tenant = strings.Repeat("x", store.MaxName+1)
	if _, err := use(h, m, "search", "a"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// TestRateLimitOfWhatGoesOn: a call that has kept something, or whose result is there, goes
// on, whatever was called since.
func TestRateLimitOfWhatGoesOn(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := middleware.RateLimit(minute(1, unchanged))
	wantRan(t, h, m, "search", 1)
	for _, call := range []holdfast.ToolCall{{Name: "search", Key: "k1", Finished: true},
		{Name: "search", Key: "k2", Kept: []byte(`{"task":1}`)}} {
		result, err := m.Tool(func(context.Context, holdfast.Tool, holdfast.ToolCall) (holdfast.ToolResult, error) {
			return holdfast.ToolResult{Text: "went on"}, nil
		})(h.Context(), nil, call)
		if err != nil || result.Text != "went on" {
			t.Errorf("got %+v, %v", result, err)
		}
	}
}

// TestRateLimitCountsWhatComesLate: a call that is counted after the end of its window, when
// others have begun the next one, is still one of its own window, which is full.
func TestRateLimitCountsWhatComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := middleware.RateLimit(minute(1, unchanged))
		h := hooktest.New(t)
		other := hooktest.New(t)
		other.Ledger = &hooktest.Slow{Ledger: h.Ledger, Pause: time.Second}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) - time.Second/2)
		if got, err := use(h, m, "a", "1"); err != nil || got.Text != "ran" {
			t.Fatalf("the first call: %+v, %v", got, err)
		}
		late := make(chan holdfast.ToolResult)
		go func() {
			got, err := use(other, m, "a", "2")
			if err != nil {
				t.Error(err)
			}
			late <- got
		}()
		time.Sleep(800 * time.Millisecond)
		if got, err := use(h, m, "a", "3"); err != nil || got.Text != "ran" {
			t.Errorf("the first call of the next window: %+v, %v", got, err)
		}
		if got := <-late; got.Text == "ran" {
			t.Error("a second call is admitted to a window of one")
		}
	})
}
