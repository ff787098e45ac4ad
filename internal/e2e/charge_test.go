package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// TestChargedOnce kills the server again and again while it charges a card ten
// times with a tool that is declared once: no charge is made twice, and every
// charge that was made is in the journal under a key of its own.
func TestChargedOnce(t *testing.T) {
	t.Parallel()
	k := newKiller(t, newFile(t), "per_iteration", "on")
	w := &watcher{killer: k, thread: "shop", run: "r1"}
	res, err := post(t.Context(), k.p.url, input(w.thread, w.run, userMessage("u1", "charge 10")))
	if err != nil {
		t.Fatal(err)
	}
	// The error is the cut connection.
	_ = readStream(res.Body, func(r record) bool { w.take(r); return len(w.seen) > 12 })
	res.Body.Close()
	for i := range 6 {
		wait.Pass(time.Duration(15+11*i) * time.Millisecond)
		k.p.kill()
		k.p = start(t, k.addr, k.store, k.args...)
	}
	if end := w.follow(); end.kind() != "RUN_FINISHED" {
		t.Fatalf("ended with %s", end.Raw)
	}
	charged := map[string]int{}
	for _, line := range k.journalFrom(0) {
		if strings.HasPrefix(line, "charge ") {
			charged[fields(line)["key"]]++
		}
	}
	if len(charged) == 0 {
		t.Fatal("nothing was charged")
	}
	for key, n := range charged {
		if n != 1 {
			t.Errorf("%s was charged %d times", key, n)
		}
	}
}
