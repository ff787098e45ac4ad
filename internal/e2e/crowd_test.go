package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// TestCrowd kills a server with forty runs under way. The next one may run only
// ten at a time; it brings all of them to their end.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const crowd = 40
	k := newKiller(t, newFile(t), "per_iteration", "on")
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			res, err := post(t.Context(), k.p.url, input(fmt.Sprintf("t%d", i), "r1", k.plan()))
			if err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("thread %d: %v %v", i, res, err)
				return
			}
			defer res.Body.Close()
			n := 0
			// The error of those that are cut is the cut connection.
			_ = readStream(res.Body, func(record) bool { n++; return n > 40 })
		})
	}
	wg.Wait()
	k.p.kill()
	k.p = start(t, k.addr, k.store, append(k.args, "--max-runs=10")...)
	for i := range crowd {
		w := &watcher{killer: k, thread: fmt.Sprintf("t%d", i), run: "r1"}
		// Until a place is free the server says so, and nothing is lost.
		wait.Until(t, "a place for "+w.thread, func() bool {
			res, err := http.Get(k.p.url + "/threads/" + w.thread + "/runs/r1/events")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			full := res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != ""
			if !full && res.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d", w.thread, res.StatusCode)
			}
			return !full
		})
		if end := w.follow(); end.kind() != "RUN_FINISHED" {
			t.Errorf("%s: ended with %s", w.thread, end.Raw)
		}
		w.checkLog()
		k.checkHistory(w.thread)
	}
}
