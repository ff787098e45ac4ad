package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestRedisFull takes Redis the memory in the middle of a run, for longer than
// the server's lease, which cannot be renewed meanwhile. The run waits, what is
// there can be read, and new work is refused; with memory the run goes on: the
// client's stream is not even cut, and nothing was started twice.
func TestRedisFull(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	k := newKiller(t, redis.Database(t), "per_iteration", "on")
	total := k.rehearse()
	for i := range 3 {
		w := &watcher{killer: k, thread: fmt.Sprintf("t%d", i), run: "r1"}
		res, err := post(t.Context(), k.p.url, input(w.thread, w.run, k.plan()))
		if err != nil {
			t.Fatal(err)
		}
		mark := k.journalSize()
		full := false
		err = readStream(res.Body, func(r record) bool {
			w.take(r)
			if !full && len(w.seen) >= 1+i*total/3 {
				full = true
				k.fillRedis(redis, w)
			}
			return false
		})
		res.Body.Close()
		if err != nil || w.seen[len(w.seen)-1].kind() != "RUN_FINISHED" {
			t.Fatalf("the stream ended with %s, %v\n%s", w.seen[len(w.seen)-1].Raw, err, k.p.out)
		}
		w.checkLog()
		k.checkHistory(w.thread)
		k.checkOnce(k.journalFrom(mark))
	}
}

// fillRedis leaves Redis without memory until the server has noticed, looks at
// how it bears that, and gives the memory back.
func (k *killer) fillRedis(server *redistest.Server, w *watcher) {
	k.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	limit := func(memory string) {
		k.Helper()
		if err := c.ConfigSet(k.Context(), "maxmemory", memory).Err(); err != nil {
			k.Fatal(err)
		}
	}
	begun := len(k.p.out.String())
	limit("1mb")
	k.awaitLog(begun, `msg="failed to checkpoint`, "thread="+w.thread+" ", "OOM command not allowed")
	k.awaitLog(begun, `msg="the lease could not be renewed"`)
	res, err := post(k.Context(), k.p.url, input("new-"+w.thread, "r1", k.plan()))
	if err != nil {
		k.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Error struct{ Code, Hint string } }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		k.Fatal(err)
	}
	if res.StatusCode != http.StatusServiceUnavailable || answer.Error.Code != codes.StoreUnavailable || !strings.Contains(answer.Error.Hint, "Try again") {
		k.Errorf("a POST on a full Redis: %d %+v", res.StatusCode, answer)
	}
	var history struct{ Messages []map[string]any }
	if code := getJSON(k.T, k.p.url+"/threads/"+w.thread+"/messages", &history); code != http.StatusOK || len(history.Messages) == 0 {
		k.Errorf("GET messages: %d, %d messages", code, len(history.Messages))
	}
	limit("0")
}

// awaitLog waits for a line with all these parts in what the server has logged
// since it had logged so many bytes.
func (k *killer) awaitLog(since int, parts ...string) {
	k.Helper()
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(k.p.out.String()[since:]) {
			found := 0
			for _, part := range parts {
				if strings.Contains(line, part) {
					found++
				}
			}
			if found == len(parts) {
				return
			}
		}
	}
	k.Fatalf("the server does not log %q: %s", parts, k.p.out)
}
