package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
)

// TestDeploy stops the server as a deployment does, in the middle of a run: it
// comes to the next boundary, tells its watchers, and exits with 0; the next one
// goes on, and nothing at all is done twice.
func TestDeploy(t *testing.T) {
	t.Parallel()
	k := newKiller(t, newFile(t), "per_iteration", "on")
	for i, after := range []int{20, 70, 140} {
		w := &watcher{killer: k, thread: []string{"first", "second", "third"}[i], run: "r1"}
		res, err := post(t.Context(), k.p.url, input(w.thread, w.run, k.plan()))
		if err != nil {
			t.Fatal(err)
		}
		var last record
		err = readStream(res.Body, func(r record) bool {
			w.take(r)
			last = r
			if len(w.seen) == after {
				if err := k.p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			return false
		})
		res.Body.Close()
		if err != nil || last.ID != "" || last.Data["code"] != codes.StreamCut {
			t.Fatalf("the stream ended with %s (%v)", last.Raw, err)
		}
		select {
		case <-k.p.done:
		case <-time.After(patience):
			t.Fatal("the server does not stop")
		}
		if code := k.p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("exit code %d: %s", code, k.p.out)
		}
		finished, mark := k.finished(w.thread), k.journalSize()
		k.p = start(t, k.addr, k.store, k.args...)
		w.finish()
		w.checkLog()
		k.checkHistory(w.thread)
		k.checkRepeats(w.thread, finished, k.journalFrom(mark))
	}
}
