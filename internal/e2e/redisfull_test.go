package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
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
	total, noticed := k.rehearse(), 0
	for i := range 3 {
		w := &watcher{killer: k, thread: fmt.Sprintf("t%d", i), run: "r1"}
		res, err := post(t.Context(), k.p.url, input(w.thread, w.run, k.plan()))
		if err != nil {
			t.Fatal(err)
		}
		mark, logged := k.journalSize(), len(k.p.out.String())
		full := false
		err = readStream(res.Body, func(r record) bool {
			w.take(r)
			if !full && len(w.seen) >= 1+i*total/3 {
				full = true
				if k.fillRedis(redis, w, logged) {
					noticed++
				}
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
	if noticed == 0 {
		t.Error("Redis was full after the end of each run")
	}
}

// fillRedis leaves Redis without memory until the server has noticed, looks at
// how it bears that, and gives the memory back. It reports false if the run had ended
// before.
func (k *killer) fillRedis(server *redistest.Server, w *watcher, logged int) bool {
	k.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	limit := func(memory string) {
		k.Helper()
		if err := c.ConfigSet(k.Context(), "maxmemory", memory).Err(); err != nil {
			k.Fatal(err)
		}
	}
	limit("1mb")
	defer limit("0")
	if !k.awaitFailure(w, logged, "OOM command not allowed") {
		return false
	}
	k.awaitLog(logged, []string{`msg="the lease could not be renewed"`})
	res, err := post(k.Context(), k.p.url, input("new-"+w.thread, "r1", k.plan()))
	if err != nil {
		k.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Error struct{ Code, Hint string } }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		k.Fatal(err)
	}
	if res.StatusCode != http.StatusServiceUnavailable || answer.Error.Code != codes.StoreUnavailable ||
		!strings.Contains(answer.Error.Hint, "Try again") {
		k.Errorf("a POST on a full Redis: %d %+v", res.StatusCode, answer)
	}
	if code := getJSON(k.T, k.p.url+"/readyz", new(any)); code != http.StatusServiceUnavailable {
		k.Errorf("a server whose Redis is full says at /readyz: %d", code)
	}
	var history struct{ Messages []map[string]any }
	if code := getJSON(k.T, k.p.url+"/threads/"+w.thread+"/messages", &history); code != http.StatusOK ||
		len(history.Messages) == 0 {
		k.Errorf("GET messages: %d, %d messages", code, len(history.Messages))
	}
	return true
}

// awaitLog waits for a line in what the server has logged since it had logged so many
// bytes. It has all parts of one of the lines that are awaited; awaitLog says of which.
func (k *killer) awaitLog(since int, lines ...[]string) (which int) {
	k.Helper()
	k.p.awaitOutput(func(text string) bool {
		for line := range strings.Lines(text[since:]) {
			which = slices.IndexFunc(lines, func(parts []string) bool { return hasAll(line, parts) })
			if which >= 0 {
				return true
			}
		}
		return false
	}, nil)
	return which
}

func hasAll(line string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
}
