package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// TestRedisDies kills Redis in the middle of a run and starts it again. The
// server waits, shows nothing that is not stored, and goes on: the client's
// stream is not even cut.
func TestRedisDies(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	k := newKiller(t, redis.Database(t), "per_iteration", "on")
	total, noticed := k.rehearse(), 0
	for i := range 5 {
		w := &watcher{killer: k, thread: fmt.Sprintf("t%d", i), run: "r1"}
		res, err := post(t.Context(), k.p.url, input(w.thread, w.run, k.plan()))
		if err != nil {
			t.Fatal(err)
		}
		mark, logged := k.journalSize(), len(k.p.out.String())
		died := false
		err = readStream(res.Body, func(r record) bool {
			w.take(r)
			if !died && len(w.seen) >= 1+i*total/5 {
				died = true
				redis.Kill(t)
				if k.awaitFailure(w, logged) {
					noticed++
				}
				redis.Run(t)
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
		t.Error("Redis died after the end of each run")
	}
}

// awaitFailure waits until the server has logged, after so many bytes, that it cannot
// store the run, for all these reasons. A watcher may lag behind on a busy machine: it
// reports false if the run had ended before.
func (k *killer) awaitFailure(w *watcher, logged int, reasons ...string) bool {
	k.Helper()
	failed := append([]string{`msg="failed to checkpoint`, "thread=" + w.thread + " "}, reasons...)
	return k.awaitLog(logged, failed, []string{`msg="run ended" thread=` + w.thread + " "}) == 0
}

// checkOnce: no tool call and no model call was started twice.
func (k *killer) checkOnce(journal []string) {
	k.Helper()
	started := map[string]int{}
	for _, line := range journal {
		f := fields(line)
		switch {
		case strings.HasPrefix(line, "tool start"):
			started["tool "+f["key"]]++
		case strings.HasPrefix(line, "model start"):
			started["model "+f["thread"]+"/"+f["iteration"]]++
		}
	}
	if len(started) == 0 {
		k.Error("the journal is empty")
	}
	for what, n := range started {
		if n > 1 {
			k.Errorf("%s was started %d times", what, n)
		}
	}
}
