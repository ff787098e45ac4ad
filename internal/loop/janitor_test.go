package loop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
)

// TestRetention: what is old goes by itself, what somebody has yet to finish stays.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		e := engine(t, memstore.New(), func(c *testConfig) {
			c.Retention = Retention{Every: time.Hour, Checkpoints: 2 * day, Threads: 7 * day}
		}, traveller(&notebook{}))
		for _, id := range []string{"idle", "stopped"} {
			reply, err := e.Post(t.Context(), alice, "", runInput(id, "r", userSays("u1", "go")))
			succeeded(t, collect(t, reply, err))
		}
		must(e.Rewind(t.Context(), alice, "stopped", holdfast.Travel{Checkpoint: checkpoints(t, e, "stopped")[1].ID}))(t)
		time.Sleep(day)
		if n := len(checkpoints(t, e, "idle")); n != 4 {
			t.Errorf("after a day %d checkpoints are left of 4", n)
		}
		time.Sleep(2 * day)
		for _, id := range []string{"idle", "stopped"} {
			if n := len(checkpoints(t, e, id)); n != 1 {
				t.Errorf("after three days %s has %d checkpoints, want its newest", id, n)
			}
		}
		time.Sleep(5 * day)
		if _, err := e.Thread(t.Context(), alice, "idle"); code(err) != holdfast.CodeNotFound {
			t.Errorf("after eight days the idle thread is still there: %v", err)
		}
		succeeded(t, resumed(t, e, "stopped", "r2"))
	})
}

// TestRetentionArchives: a log whose process died before it could archive it is
// archived by whoever comes by.
func TestRetentionArchives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		dead := engine(t, store, func(c *testConfig) { c.ArchiveAfter = 1000 * time.Hour }, traveller(&notebook{}))
		reply, err := dead.Post(t.Context(), alice, "", runInput("t", "r", userSays("u1", "go")))
		succeeded(t, collect(t, reply, err))
		engine(t, store, func(c *testConfig) { c.Retention.Every = time.Hour }, traveller(&notebook{}))
		time.Sleep(3 * time.Hour)
		key := holdfast.ThreadKey{Tenant: "acme", Thread: "t"}
		if _, err := store.Value(t.Context(), key, holdfast.KindLog, "r"); err != nil {
			t.Errorf("the log was not archived: %v", err)
		}
	})
}

// wide is a tool whose results are large.
func wide() holdfast.Agent {
	tell := tool("tell", holdfast.EffectPure, func(context.Context) (string, error) { return strings.Repeat("x", 10_000), nil })
	many := []holdfast.Delta{}
	for range 20 {
		many = append(many, calls("tell", "{}"))
	}
	return holdfast.Agent{Name: "a", Model: say(append(many, holdfast.Delta{Text: "done"})...), Tools: []holdfast.Tool{tell}}
}

// TestThreadMaxBytes: a thread that has become too large is not gone on with;
// nothing is lost, and pruning helps.
func TestThreadMaxBytes(t *testing.T) {
	e := engine(t, memstore.New(), func(c *testConfig) { c.WarnBytes, c.MaxBytes = 30_000, 80_000 }, wide())
	reply, err := e.Post(t.Context(), alice, "", runInput("t", "r1", userSays("u1", "go")))
	events := collect(t, reply, err)
	ended, ok := lastOf(events).(agui.RunError)
	if !ok || ended.Code != holdfast.CodeThreadTooLarge || !strings.Contains(ended.Message, "Prune it") {
		t.Fatalf("the run ended with %+v", lastOf(events))
	}
	warned := 0
	for _, ev := range events {
		if c, ok := ev.(agui.Custom); ok && c.Name == "holdfast.thread_large" {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("the stream warned %d times, want once", warned)
	}
	if info := must(e.Thread(t.Context(), alice, "t"))(t); info.Status != holdfast.StatusStopped || info.Size["messages"] < 20_000 {
		t.Errorf("the thread is %+v", info)
	}
	_, err = e.Post(t.Context(), alice, "", runInput("t", "r2"))
	var pub *holdfast.Error
	if !errors.As(err, &pub) || pub.Code != holdfast.CodeThreadTooLarge {
		t.Errorf("going on: %v", err)
	}
	// Back at the beginning, and pruned, it fits again.
	must(e.Rewind(t.Context(), alice, "t", holdfast.Travel{Message: "u1"}))(t)
	must(e.Prune(t.Context(), alice, "t", 1, false))(t)
	if err := e.archive(t.Context(), holdfast.ThreadKey{Tenant: "acme", Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	reply, err = e.Post(t.Context(), alice, "", runInput("t", "r3"))
	if err != nil {
		t.Fatalf("after pruning: %v", err)
	}
	collect(t, reply, nil)
}

// TestPruneBytes: a thread that has grown too large is pruned by itself once it does
// not run, and its history stays.
func TestPruneBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, memstore.New(), func(c *testConfig) { c.Retention = Retention{Every: time.Hour, PruneBytes: 1000} }, traveller(&notebook{}))
		for _, run := range []string{"r1", "r2"} {
			in := runInput("t", run, userSays("u1", "go"))
			if run == "r2" {
				must(e.Rewind(t.Context(), alice, "t", holdfast.Travel{Message: "u1"}))(t)
				in.Messages = nil
			}
			reply, err := e.Post(t.Context(), alice, "", in)
			succeeded(t, collect(t, reply, err))
		}
		time.Sleep(3 * time.Hour)
		if n := len(checkpoints(t, e, "t")); n != 1 {
			t.Errorf("%d checkpoints are left, want the newest", n)
		}
		stored := must(e.Store.Messages(t.Context(), holdfast.ThreadKey{Tenant: "acme", Thread: "t"}))(t)
		if len(stored) != len(wholeTrip) {
			t.Errorf("%d messages are stored, want those of the history alone", len(stored))
		}
		wantTexts(t, e, "t", wholeTrip...)
	})
}
