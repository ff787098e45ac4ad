package upkeep_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestRetention: what is old is removed without a request; what somebody has yet to finish
// stays.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			c.Retention = upkeep.Retention{Every: time.Hour, Checkpoints: 2 * day, Threads: 7 * day}
			c.Lease = time.Hour // it is renewed in each of the eight days
		}, looptest.Traveller(&looptest.Notebook{}))
		for _, id := range []string{"idle", "stopped"} {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput(id, "r", looptest.UserSays("u1", "go")))
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
		}
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "stopped",
			threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "stopped")[1].ID}))(t)
		time.Sleep(day)
		if n := len(looptest.Checkpoints(t, e, "idle")); n != 4 {
			t.Errorf("after a day %d checkpoints are left of 4", n)
		}
		time.Sleep(2 * day)
		for _, id := range []string{"idle", "stopped"} {
			if n := len(looptest.Checkpoints(t, e, id)); n != 1 {
				t.Errorf("after three days %s has %d checkpoints, want its newest", id, n)
			}
		}
		time.Sleep(5 * day)
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "idle"); looptest.Code(err) != codes.NotFound {
			t.Errorf("after eight days the idle thread is still there: %v", err)
		}
		looptest.Succeeded(t, looptest.Resumed(t, e, "stopped", "r2"))
	})
}

// TestRetentionIsUnseen: that retention is through with a thread is noted in its state, and nobody who has
// read the thread sees it; that it has removed something is seen.
func TestRetentionIsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		db := memstore.New()
		e := looptest.Start(t, db, func(c *looptest.Config) {
			c.Retention = upkeep.Retention{Every: time.Hour, Checkpoints: 2 * day}
			c.Lease = time.Hour
		}, looptest.Traveller(&looptest.Notebook{}))
		looptest.Posted(t, e, looptest.RunInput("t", "r", looptest.UserSays("u1", "go")))
		read := func() string { return looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t).ETag }
		tidied := func() uint64 {
			head := looptest.Must(db.Head(t.Context(), looptest.KeyOf("t")))(t)
			return looptest.Must(thread.DecodeState(head.State))(t).Tidied
		}
		for _, c := range []struct {
			what   string
			change func() error
		}{
			{"a run", func() error { return nil }},
			{"a title", func() error {
				title := "another"
				_, err := upkeep.Titles{Keeper: e.Keeper}.Describe(t.Context(), looptest.Alice, "t", "",
					threads.Description{Title: &title})
				return err
			}},
			{"a mark", func() error {
				_, err := e.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{})
				return err
			}},
		} {
			if err := c.change(); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			etag := read()
			time.Sleep(2 * time.Hour)
			if tidied() == 0 || read() != etag {
				t.Errorf("%s: the ETag was %s, and is %s; retention was through at record %d", c.what, etag, read(),
					tidied())
			}
		}
		etag := read()
		time.Sleep(3 * day)
		if n := len(looptest.Checkpoints(t, e, "t")); n != 1 || read() == etag {
			t.Errorf("of %d checkpoints that are left, the ETag is still %s", n, etag)
		}
	})
}

// counted counts how often heads, and the checkpoints of a thread, are read.
type counted struct {
	store.Store
	heads, all, some atomic.Int64
}

func (c *counted) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	c.heads.Add(1)
	return c.Store.Head(ctx, key)
}

func (c *counted) Values(
	ctx context.Context, key store.ThreadKey, kind store.Kind, before string, limit int,
) ([]store.Value, error) {
	if kind == store.KindCheckpoint {
		if limit == 0 {
			c.all.Add(1)
		} else {
			c.some.Add(1)
		}
	}
	return c.Store.Values(ctx, key, kind, before, limit)
}

// TestRetentionReachesOldThreads: a limit also holds for threads that had been idle for
// much longer when it was set, and for ages below that of archiving. Once such a thread
// is pruned, it is not read as a whole again.
func TestRetentionReachesOldThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		db := memstore.New()
		longLease := func(c *looptest.Config) { c.Lease = 10 * day }
		before := looptest.Start(t, db, longLease, looptest.Traveller(&looptest.Notebook{}))
		reply, err := before.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		time.Sleep(30 * day)
		if n := len(looptest.Checkpoints(t, before, "t")); n != 4 {
			t.Fatalf("without a limit %d checkpoints are left of 4", n)
		}

		reads := &counted{Store: db}
		e := looptest.Start(t, reads, func(c *looptest.Config) {
			longLease(c)
			c.Retention = upkeep.Retention{Every: time.Hour, Checkpoints: 10 * time.Second}
		}, looptest.Traveller(&looptest.Notebook{}))
		time.Sleep(90 * time.Minute)
		if n := len(looptest.Checkpoints(t, e, "t")); n != 1 {
			t.Errorf("%d checkpoints are left, want the newest", n)
		}
		reads.all.Store(0)
		reads.some.Store(0)
		time.Sleep(10 * time.Hour)
		if all, some := reads.all.Load(), reads.some.Load(); all != 0 || some != 0 {
			t.Errorf("later its checkpoints were read as a whole %d times and in part %d times, want 0 and 0", all,
				some)
		}
		looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
	})
}

// TestRetentionDeletesOldThreads: threads that were idle before the limit was set are
// deleted too.
func TestRetentionDeletesOldThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		longLease := func(c *looptest.Config) { c.Lease = 1000 * time.Hour }
		before := looptest.Start(t, db, longLease, looptest.Traveller(&looptest.Notebook{}))
		reply, err := before.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		time.Sleep(500 * time.Hour)
		e := looptest.Start(t, db, func(c *looptest.Config) {
			longLease(c)
			c.Retention = upkeep.Retention{Every: time.Hour, Threads: 10 * time.Second}
		}, looptest.Traveller(&looptest.Notebook{}))
		time.Sleep(90 * time.Minute)
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t"); looptest.Code(err) != codes.NotFound {
			t.Errorf("the thread is still there: %v", err)
		}
	})
}

// TestRetentionArchives: a log whose process died before it could archive it is archived by
// another process.
func TestRetentionArchives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		dead := looptest.Start(t, db, func(c *looptest.Config) { c.ArchiveAfter = 1000 * time.Hour },
			looptest.Traveller(&looptest.Notebook{}))
		reply, err := dead.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		looptest.Start(t, db, func(c *looptest.Config) { c.Retention.Every = time.Hour },
			looptest.Traveller(&looptest.Notebook{}))
		time.Sleep(3 * time.Hour)
		key := store.ThreadKey{Tenant: "acme", Thread: "t"}
		if _, err := db.Value(t.Context(), key, store.KindLog, "r"); err != nil {
			t.Errorf("the log was not archived: %v", err)
		}
	})
}

// wide is a tool whose results are large.
func wide() holdfast.Agent {
	tell := looptest.Tool("tell", holdfast.EffectPure, func(context.Context) (string, error) {
		return strings.Repeat("x", 10_000), nil
	})
	many := []holdfast.Delta{}
	for range 20 {
		many = append(many, looptest.Calls("tell", "{}"))
	}
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(append(many, holdfast.Delta{Text: "done"})...),
		Tools: []holdfast.Tool{tell},
	}
}

// TestThreadMaxBytes: no run continues on a thread that has become too large; nothing is
// lost, and pruning helps.
func TestThreadMaxBytes(t *testing.T) {
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) { c.WarnBytes, c.MaxBytes = 30_000, 80_000 },
		wide())
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	events := looptest.Collect(t, reply, err)
	ended, ok := looptest.LastOf(events).(agui.RunError)
	if !ok || ended.Code != codes.ThreadTooLarge || !strings.Contains(ended.FullText(), "Prune it") {
		t.Fatalf("the run ended with %+v", looptest.LastOf(events))
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
	if info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice,
		"t"))(t); info.Status != threads.StatusStopped || info.Size["messages"] < 20_000 {
		t.Errorf("the thread is %+v", info)
	}
	_, err = e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r2"))
	var pub *holdfast.Error
	if !errors.As(err, &pub) || pub.Code != codes.ThreadTooLarge {
		t.Errorf("going on: %v", err)
	}
	// Back at the beginning, and pruned, it fits again.
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
	looptest.Must(e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false))(t)
	if err := e.Keeper.Archive(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	reply, err = e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r3"))
	if err != nil {
		t.Fatalf("after pruning: %v", err)
	}
	looptest.Collect(t, reply, nil)
}

// TestPruneBytes: a thread that has grown too large is pruned by itself once it does
// not run, and its history stays.
func TestPruneBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			c.Retention = upkeep.Retention{Every: time.Hour, PruneBytes: 1000}
		}, looptest.Traveller(&looptest.Notebook{}))
		for _, run := range []string{"r1", "r2"} {
			in := looptest.RunInput("t", run, looptest.UserSays("u1", "go"))
			if run == "r2" {
				looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
				in.Messages = nil
			}
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "", in)
			looptest.Succeeded(t, looptest.Collect(t, reply, err))
		}
		time.Sleep(3 * time.Hour)
		if n := len(looptest.Checkpoints(t, e, "t")); n != 1 {
			t.Errorf("%d checkpoints are left, want the newest", n)
		}
		stored := looptest.Must(e.Store.Messages(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"}))(t)
		if len(stored) != len(looptest.WholeTrip) {
			t.Errorf("%d messages are stored, want those of the history alone", len(stored))
		}
		looptest.WantTexts(t, e, "t", looptest.WholeTrip...)
	})
}
