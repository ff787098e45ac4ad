package e2e

import (
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// TestTakeoverByAnother has two servers on one Redis. Each time the one that
// runs a thread is killed at another moment, and the other one takes the run
// over by itself: nothing that was finished is run again, and a watcher goes on
// there with its cursor and has every record once. CI takes a part of the moments.
func TestTakeoverByAnother(t *testing.T) {
	t.Parallel()
	// The parts share no thread, so none wakes another's watchers.
	redis := redistest.Start(t)
	eachMoment(t, 0, func(t *testing.T) func(i int) {
		k := newKiller(t, redis.Database(t), "per_iteration", "on", fastModel)
		total := k.rehearse()
		otherAddr := redistest.FreeAddr(t)
		other := start(t, otherAddr, k.store, k.args...)
		return func(i int) {
			w := &watcher{killer: k, thread: fmt.Sprintf("t%d", i), run: "r1"}
			finished, mark := k.killAt(w, 1+i*total/moments)
			// The dead one comes back only after the other one has done the work.
			dead := k.addr
			k.p, k.addr, otherAddr = other, otherAddr, dead
			w.finish()
			w.checkLog()
			k.checkHistory(w.thread)
			k.checkRepeats(w.thread, finished, k.journalFrom(mark))
			other = start(t, otherAddr, k.store, k.args...)
		}
	})
}

// TestWatchElsewhere follows a run at a server that does not run it, from
// before its first answer to its end, and cancels another one from there.
func TestWatchElsewhere(t *testing.T) {
	t.Parallel()
	k := newKiller(t, redistest.Start(t).Database(t), "per_iteration", "on")
	other := start(t, redistest.FreeAddr(t), k.store, k.args...)
	w := &watcher{killer: k, thread: "t", run: "r1"}
	res, err := post(t.Context(), k.p.url, input(w.thread, w.run, k.plan()))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	here := k.p
	k.p = other
	if end := w.follow(); end.kind() != "RUN_FINISHED" {
		t.Errorf("ended with %s", end.Raw)
	}
	w.checkLog()
	if res, err = post(t.Context(), here.url, input("c", "r1", userMessage("u1", "slow 1000"))); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var end record
	asked := false
	err = readStream(res.Body, func(r record) bool {
		if end = r; !asked && r.kind() == "TEXT_MESSAGE_CONTENT" {
			asked = true
			cancelRun(t, other.url, "c", "r1")
		}
		return false
	})
	outcome, _ := end.Data["outcome"].(map[string]any)
	if err != nil || end.kind() != "RUN_FINISHED" || outcome["type"] != "cancelled" {
		t.Errorf("the cancelled run ended with %s, %v", end.Raw, err)
	}
}
