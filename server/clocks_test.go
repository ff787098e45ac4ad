package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/store"
)

// TestClocksThatAreOff: two servers share a Redis, and their clocks are two hours apart. A run at
// the one goes on for longer than a lease, and is shown by the other, which does not take it
// over; both write the same time, and both count in the same window.
func TestClocksThatAreOff(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	const lease = time.Second // a busy machine renews it late
	ran, release := &atomic.Int32{}, make(chan struct{})
	var urls []string
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		c := config(t)
		c.Lease = lease
		a := lookAndWait(ran, release)
		limit := middleware.RateLimit(middleware.RateLimitOptions{
			Tools:  []string{"look"},
			Limit:  1,
			Window: middleware.Duration(2 * time.Hour),
			Then:   middleware.RateLimitEnd,
		})
		a.Middleware = []holdfast.Middleware{limit}
		c.Agents = []holdfast.Agent{a}
		c.OpenStore = func() (store.Store, error) {
			return redisstore.Open(context.Background(), "redis://"+redis.Addr(),
				redisstore.Options{Now: func() time.Time { return time.Now().Add(off) }})
		}
		urls = append(urls, started(t, c))
	}
	body := func(thread string) string {
		return `{"threadId":"` + thread + `","runId":"r","protocolVersion":"1.0","messages":[{"id":"m",` +
			`"role":"user","content":"go"}]}`
	}
	posted(t, urls[0]+"/runs", body("t"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, urls[1]+"/threads/t/runs/r/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	var all strings.Builder
	res.Body = io.NopCloser(io.TeeReader(res.Body, &all))
	for ev := range events(t, res) {
		if ev.Type == "TOOL_CALL_RESULT" && ev.ToolCallID == "c1" {
			time.AfterFunc(4*lease, func() {
				close(release)
			}) // the other server could have taken it for dead meanwhile
		}
	}
	if text := all.String(); strings.Contains(text, "holdfast.takeover") || !strings.Contains(text, "RUN_FINISHED") {
		t.Errorf("the other server shows:\n%s", text)
	}
	var detail struct{ UpdatedAt time.Time }
	res = posted(t, urls[1]+"/runs", body("u"))
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), "rate_limited") {
		t.Errorf("the window of the other server is another one: %s, %v", text, err)
	}
	for _, thread := range []string{"t", "u"} {
		for _, url := range urls {
			res, err := http.Get(url + "/threads/" + thread)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if err := json.NewDecoder(res.Body).
				Decode(&detail); err != nil || time.Since(detail.UpdatedAt).Abs() > 5*time.Minute {
				t.Errorf("thread %s was written at %s, %v", thread, detail.UpdatedAt, err)
			}
		}
	}
}

// TestRedisClockMoves: the clock of Redis is put back and forward by an hour, as by a failover to
// a machine whose clock is wrong. Readiness follows what is so within seconds, and no record is
// older than the one before it.
func TestRedisClockMoves(t *testing.T) {
	for name, off := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := miniredis.RunT(t)
			c := config(t)
			c.Lease, c.Store = 300*time.Millisecond, "redis://"+redis.Addr()
			moved, ran := make(chan struct{}), &atomic.Int32{}
			c.Agents = []holdfast.Agent{lookAndWait(ran, moved)}
			url := started(t, c)
			ready := func(want int) {
				t.Helper()
				wait.For(t, func() error {
					res, err := http.Get(url + "/readyz")
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
					if res.StatusCode != want {
						return fmt.Errorf("readiness stays %d", res.StatusCode)
					}
					return nil
				})
			}
			ready(http.StatusOK)
			res := posted(t, url+"/runs", `{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[{"id":"m",`+
				`"role":"user","content":"go"}]}`)
			redis.SetTime(time.Now().Add(off))
			time.AfterFunc(2*c.Lease, func() { close(moved) }) // the lease is renewed by then
			var all strings.Builder
			res.Body = io.NopCloser(io.TeeReader(res.Body, &all))
			for range events(t, res) {
			}
			last := int64(0)
			for line := range strings.Lines(all.String()) {
				var ev struct{ Timestamp int64 }
				data, is := strings.CutPrefix(line, "data: ")
				if !is || json.Unmarshal([]byte(data), &ev) != nil || ev.Timestamp == 0 {
					continue
				}
				if ev.Timestamp < last {
					t.Errorf("a record of %d follows one of %d", ev.Timestamp, last)
				}
				last = ev.Timestamp
			}
			if last == 0 || !strings.Contains(all.String(), "RUN_FINISHED") {
				t.Errorf("the run shows:\n%s", all.String())
			}
			ready(http.StatusOK)
			redis.SetError("away")
			ready(http.StatusServiceUnavailable)
			redis.SetError("")
			redis.SetTime(time.Now())
			ready(http.StatusOK)
		})
	}
}
