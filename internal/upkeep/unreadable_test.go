package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// badStates are states that no run can continue from, by the code of the error.
var badStates = map[string]struct {
	state []byte
	code  string
}{
	"no JSON":          {[]byte("{"), codes.CheckpointUnreadable},
	"nothing":          {[]byte("{}"), codes.CheckpointUnreadable},
	"null":             {[]byte("null"), codes.CheckpointUnreadable},
	"an empty history": {[]byte(`{"dataFormat":1,"phase":"idle"}`), ""}, // a request that needs the history finds out
	"a newer version":  {[]byte(`{"dataFormat":999,"phase":"idle"}`), codes.VersionTooNew},
	"a negative count": {[]byte(`{"dataFormat":1,"phase":"idle","count":-7}`), codes.CheckpointInvalid},
	"an odd question":  {[]byte(`{"dataFormat":1,"phase":"interrupted","question":{}}`), codes.CheckpointUnreadable},
}

// setState replaces the state of a thread, behind everybody's back.
func setState(t *testing.T, db store.Store, id string, state []byte) {
	t.Helper()
	head := looptest.Must(db.Head(t.Context(), looptest.KeyOf(id)))(t)
	err := db.Commit(t.Context(), &store.Commit{
		Key:       head.Key,
		ID:        "bad",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		UpdatedAt: head.UpdatedAt,
		State:     state,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// threeThreads returns an engine on whose threads a, b and c a Traveller has run. b can be
// made bad.
func threeThreads(t *testing.T, change func(*looptest.Config)) (*looptest.Engine, *looptest.Bad) {
	t.Helper()
	db := &looptest.Bad{Store: memstore.New(), Key: looptest.KeyOf("b")}
	e := looptest.Start(t, db, change, looptest.Traveller(&looptest.Notebook{}))
	for _, id := range []string{"a", "b", "c"} {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(id, "r", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	}
	return e, db
}

// bad calls f with the engine of threeThreads for each way in which b can be bad.
func bad(t *testing.T, f func(t *testing.T, e *looptest.Engine, code string)) {
	for name, c := range badStates {
		if c.code == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			e, db := threeThreads(t, nil)
			setState(t, db, "b", c.state)
			f(t, e, c.code)
		})
	}
	newer := &store.VersionError{What: "the layout", Stored: 9, Known: 1}
	for code, err := range map[string]error{codes.CheckpointUnreadable: store.ErrUnreadable,
		codes.VersionTooNew: newer} {
		t.Run("a head with "+code, func(t *testing.T) {
			e, db := threeThreads(t, nil)
			db.Break(err)
			f(t, e, code)
		})
	}
}

// TestUnreadableIsListed: one thread that cannot be read is listed as that, for its owner
// alone; nobody else learns that it is there.
func TestUnreadableIsListed(t *testing.T) {
	bad(t, func(t *testing.T, e *looptest.Engine, code string) {
		list := looptest.Must(e.Keeper.Threads(t.Context(), looptest.Alice, time.Time{}, 10))(t)
		if len(list) != 3 {
			t.Fatalf("%d threads are listed", len(list))
		}
		for _, info := range list {
			want := threads.StatusIdle
			if info.ID == "b" {
				want = threads.StatusUnreadable
				if info.Code != code || !strings.Contains(info.Text, `thread "b"`) {
					t.Errorf("b is %q: %s", info.Code, info.Text)
				}
			}
			if info.Status != want {
				t.Errorf("thread %s is %s, want %s", info.ID, info.Status, want)
			}
		}
		_, err := e.Keeper.Thread(t.Context(), looptest.Alice, "b")
		if pub := holdfast.AsError(err); pub.Code != code || pub.Details["threadId"] != "b" {
			t.Errorf("its owner gets %v, with %v", err, pub.Details)
		}
		bob := holdfast.Principal{Tenant: "acme", User: "bob"}
		_, err = e.Keeper.Thread(t.Context(), bob, "b")
		_, missing := e.Keeper.Thread(t.Context(), bob, "none")
		if looptest.Code(err) != codes.NotFound || strings.ReplaceAll(err.Error(), `"b"`, `"none"`) != missing.Error() {
			t.Errorf("another user gets %v, and for one that is not there %v", err, missing)
		}
		if list := looptest.Must(e.Keeper.Threads(t.Context(), bob, time.Time{}, 10))(t); len(list) != 0 {
			t.Errorf("another user's list has %v", list)
		}
	})
}

// TestUnreadableIsDeleted: its owner can delete it, and nobody else.
func TestUnreadableIsDeleted(t *testing.T) {
	bad(t, func(t *testing.T, e *looptest.Engine, _ string) {
		bob := holdfast.Principal{Tenant: "acme", User: "bob"}
		if _, err := e.Keeper.Delete(t.Context(), bob, "b", "", false); looptest.Code(err) != codes.NotFound {
			t.Errorf("another user gets %v", err)
		}
		if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "b", "another",
			false); looptest.Code(err) != codes.CheckpointConflict {
			t.Errorf("with another ETag: %v", err)
		}
		if n, err := e.Keeper.Delete(t.Context(), looptest.Alice, "b", "", true); n != 1 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
		if _, err := e.Store.Head(t.Context(), looptest.KeyOf("b")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("it is still there: %v", err)
		}
		if list := looptest.Must(e.Keeper.Threads(t.Context(), looptest.Alice, time.Time{}, 10))(t); len(list) != 2 {
			t.Errorf("%d threads are left", len(list))
		}
	})
}

// nameless is a store in which nobody can tell what there is under a name.
type nameless struct{ store.Store }

func (nameless) Head(context.Context, store.ThreadKey) (*store.Head, error) {
	return nil, store.ErrUnreadable
}

// TestUnreadableNameIsKept: where the name of a thread cannot be looked up, nothing is deleted,
// and its owner is not told that there is none.
func TestUnreadableNameIsKept(t *testing.T) {
	e := looptest.Start(t, nameless{memstore.New()}, nil, looptest.Traveller(&looptest.Notebook{}))
	_, err := e.Keeper.Delete(t.Context(), looptest.Alice, "b", "", false)
	if pub := holdfast.AsError(err); pub.Code != codes.CheckpointUnreadable || strings.Contains(pub.Hint, "DELETE") {
		t.Errorf("got %v, with the hint %q", err, pub.Hint)
	}
}

// TestUnreadableThatRuns: a thread that cannot be read is not deleted while a living
// process runs it.
func TestUnreadableThatRuns(t *testing.T) {
	e, db := threeThreads(t, nil)
	if err := db.Announce(t.Context(), "other", time.Hour); err != nil {
		t.Fatal(err)
	}
	ownBad(t, db, "other")
	if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "b", "",
		false); looptest.Code(err) != codes.RunInProgress {
		t.Errorf("while it runs: %v", err)
	}
	if err := db.Retire(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Keeper.Delete(t.Context(), looptest.Alice, "b", "", false); n != 1 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// TestUnreadableThatRanHere: a run that ended because its thread cannot be read any more
// does not keep its owner, which lives, from deleting the thread.
func TestUnreadableThatRanHere(t *testing.T) {
	var owner atomic.Pointer[string]
	e, db := threeThreads(t, func(c *looptest.Config) {
		c.Observer.Committed = func(_ holdfast.Iteration, c *store.Commit, _ time.Duration, _ error) {
			if c.Process != "" {
				owner.Store(&c.Process)
			}
		}
	})
	ownBad(t, db, *owner.Load())
	wait.Until(t, "the deletion, once the run that has ended has left the process", func() bool {
		n, err := e.Keeper.Delete(t.Context(), looptest.Alice, "b", "", false)
		if err != nil && holdfast.AsError(err).Code == codes.RunInProgress {
			return false
		}
		if n != 1 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
		return true
	})
}

// ownBad makes a process the owner of thread b, and what b does unreadable.
func ownBad(t *testing.T, db store.Store, process string) {
	t.Helper()
	head := looptest.Must(db.Head(t.Context(), looptest.KeyOf("b")))(t)
	owned := &store.Commit{
		Key:       head.Key,
		ID:        "bad",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		Process:   process,
		UpdatedAt: head.UpdatedAt,
		State:     []byte("{"),
	}
	if err := db.Commit(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
}

// TestCountSurvivesABadThread: a thread whose size cannot be read, even if that panics, is
// counted with what was estimated.
func TestCountSurvivesABadThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memstore.New()
		e, db := threeThreads(t, func(c *looptest.Config) {
			c.ArchiveAfter, c.Limits = time.Minute, quota.New(quota.Config{
				Limits: quota.Limits{
					Pair: quota.Pair{PerTenant: quota.Bounds{Bytes: 1 << 40}},
				},
				Ledger: ledger,
				Now:    clock.Wall,
				Log:    c.Log,
				NewID:  c.NewID,
			})
		})
		db.Panics.Store(true)
		time.Sleep(2 * time.Hour) // the clock of the test
		used := looptest.Must(ledger.Used(t.Context(), "acme",
			[]string{"usage/threads/added/tenant", "usage/threads/removed/tenant"}))(t)
		if used[0]-used[1] != 3 {
			t.Errorf("%d threads are counted, %d removed", used[0], used[1])
		}
		if err := e.Keeper.Count(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCountNeedsTheStore: a thread that cannot be read because the store does not answer has
// no size of 0. The count ends, and leaves the ledger as it is.
func TestCountNeedsTheStore(t *testing.T) {
	ledger := memstore.New()
	var limits *quota.Limiter
	e, db := threeThreads(t, func(c *looptest.Config) {
		limits = quota.New(quota.Config{
			Limits: quota.Limits{
				Pair: quota.Pair{PerTenant: quota.Bounds{Bytes: 1 << 40}},
			},
			Ledger: ledger,
			Now:    clock.Wall,
			Log:    c.Log,
			NewID:  c.NewID,
			Lag:    time.Nanosecond,
		})
		c.Limits = limits
		if _, err := limits.CountDue(t.Context()); err != nil { // so that only the test counts
			t.Fatal(err)
		}
	})
	counted := func() int64 {
		t.Helper()
		limits.Flush(t.Context())
		used := looptest.Must(ledger.Used(t.Context(), "acme",
			[]string{"usage/bytes/added/tenant", "usage/bytes/removed/tenant"}))(t)
		return used[0] - used[1]
	}
	before := counted()
	db.Break(looptest.ErrUnreachable)
	if err := e.Keeper.Count(t.Context()); !errors.Is(err, looptest.ErrUnreachable) {
		t.Errorf("the count ends with %v", err)
	}
	if got := counted(); got != before {
		t.Errorf("%d bytes are counted, %d were", got, before)
	}
	db.Break(store.ErrUnreadable)
	if err := e.Keeper.Count(t.Context()); err != nil {
		t.Error(err)
	}
	if got := counted(); got >= before {
		t.Errorf("%d bytes are counted, %d were before one of three threads was damaged", got, before)
	}
}

// TestCleanUpsLeaveUnreadable: clean-ups count a thread that cannot be read, and do the
// others.
func TestCleanUpsLeaveUnreadable(t *testing.T) {
	bad(t, func(t *testing.T, e *looptest.Engine, _ string) {
		cutoff := time.Now().Add(time.Hour)
		for _, dryRun := range []bool{true, false} {
			got, err := e.Keeper.DeleteOlderThan(t.Context(), looptest.Alice, cutoff, dryRun)
			if err != nil || got.Threads != 2 || got.Checkpoints != 6 || got.Unreadable != 1 || got.Kept != 0 {
				t.Errorf("delete-older-than: %+v, %v", got, err)
			}
		}
		for _, dryRun := range []bool{true, false} {
			got, err := e.Keeper.DeleteInactive(t.Context(), looptest.Alice, cutoff, dryRun)
			if err != nil || got.Threads != 2 || got.Unreadable != 1 || got.Kept != 0 {
				t.Errorf("delete-inactive: %+v, %v", got, err)
			}
		}
		if list := looptest.Must(e.Keeper.Threads(t.Context(), looptest.Alice, time.Time{}, 10))(t); len(list) != 1 {
			t.Errorf("%d threads are left", len(list))
		}
	})
}

// TestCleanUpSurvivesAPanic: what nobody has foreseen in one thread does not keep a
// clean-up from the others.
func TestCleanUpSurvivesAPanic(t *testing.T) {
	e, db := threeThreads(t, nil)
	db.Panics.Store(true)
	got, err := e.Keeper.DeleteOlderThan(t.Context(), looptest.Alice, time.Now().Add(time.Hour), false)
	if err != nil || got.Threads != 2 || got.Unreadable != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRetentionLeavesUnreadable: retention goes on behind a thread that cannot be read, or
// that it panics on; how many there are is said once.
func TestRetentionLeavesUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		spoil      func(db *looptest.Bad)
		unreadable int32
	}{
		"damaged": {func(db *looptest.Bad) { db.Break(store.ErrUnreadable) }, 1},
		"newer":   {func(db *looptest.Bad) { db.Break(store.ErrVersionTooNew) }, 1},
		"panics":  {func(db *looptest.Bad) { db.Panics.Store(true) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var unreadable atomic.Int32
				unreadable.Store(-1)
				e, db := threeThreads(t, func(c *looptest.Config) {
					c.Retention = upkeep.Retention{Every: time.Hour, Threads: 24 * time.Hour}
					c.ArchiveAfter = 30 * time.Minute
					c.Lease = time.Hour
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
					c.Observer = observe.Observer{Walked: func(n int) { unreadable.Store(int32(n)) }}
				})
				c.spoil(db)
				time.Sleep(48 * time.Hour)
				synctest.Wait()
				for _, id := range []string{"a", "c"} {
					if _, err := e.Store.Head(t.Context(), looptest.KeyOf(id)); !errors.Is(err, store.ErrNotFound) {
						t.Errorf("thread %s was not removed: %v", id, err)
					}
				}
				if got := unreadable.Load(); got != c.unreadable {
					t.Errorf("%d threads count as unreadable, want %d", got, c.unreadable)
				}
				if got := strings.Count(log.String(), "cannot be read are left out"); int32(got) != c.unreadable {
					t.Errorf("the log says so %d times:\n%s", got, log.String())
				}
			})
		})
	}
}

// TestHoleInTheHistory: a message that is missing is damage, which trying again does not
// mend; and a fork of a checkpoint before the damage saves what was there.
func TestHoleInTheHistory(t *testing.T) {
	e, _ := looptest.Travelled(t)
	head := looptest.Must(e.Store.Head(t.Context(), looptest.KeyOf("t")))(t)
	all := looptest.Checkpoints(t, e, "t")
	stored := looptest.Must(e.Store.Messages(t.Context(), looptest.KeyOf("t")))(t)
	// Before iteration 1, "look" has run and "charge" has not.
	c := &store.Commit{
		Key:       head.Key,
		ID:        "hole",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		UpdatedAt: head.UpdatedAt,
		Forget:    []string{stored[4].ID},
	}
	if err := e.Store.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, posted := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r9", looptest.UserSays("u9", "more")))
	_, read := e.Messages(t.Context(), looptest.Alice, "t")
	_, rewound := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: all[len(all)-1].ID})
	_, forked := e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{})
	for what, err := range map[string]error{"post": posted, "messages": read, "rewind": rewound,
		"fork of the damaged head": forked} {
		if pub := holdfast.AsError(err); pub.Code != codes.CheckpointUnreadable || pub.Details["threadId"] != "t" {
			t.Errorf("%s: %v, %v", what, err, pub.Details)
		}
	}
	for _, cp := range all {
		if cp.Iteration != 1 || cp.Metadata.Step != 1 {
			continue
		}
		got := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
			threads.Travel{Checkpoint: cp.ID, Thread: "saved"}))(t)
		if !got.EffectsIncomplete {
			t.Errorf("the fork does not say that it could not see everything: %+v", got)
		}
	}
	looptest.Succeeded(t, looptest.Resumed(t, e, "saved", "f1"))
	looptest.WantTexts(t, e, "saved", looptest.WholeTrip...)
	// A thread with a damaged message can still be deleted.
	if n, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false); n != 1 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// TestForkBeforeDamageRepeatsNothing: calls that are open at the checkpoint may have been made since,
// which cannot be seen: what must not run twice does not.
func TestForkBeforeDamageRepeatsNothing(t *testing.T) {
	j := &looptest.Notebook{}
	db := memstore.New()
	e := looptest.Start(t, db, nil, looptest.Traveller(j))
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	// A checkpoint with the open call, as a process leaves it that dies in the call.
	all := looptest.Checkpoints(t, e, "t")
	at := all[1]
	if at.Iteration != 1 || at.Status != threads.StatusRunning {
		t.Fatalf("%+v", at)
	}
	raw := looptest.Must(db.Value(t.Context(), looptest.KeyOf("t"), store.KindCheckpoint, at.ID))(t)
	cp := looptest.Must(thread.DecodeCheckpoint(raw))(t)
	stored := looptest.Must(db.Messages(t.Context(), looptest.KeyOf("t")))(t)
	cp.State.Leaf, cp.State.Count, cp.State.Open = stored[3].ID, 4, true
	calls := looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
	if !strings.Contains(string(calls[3]), "charge") {
		t.Fatalf("message 3 is %s", calls[3])
	}
	_, rest, _ := strings.Cut(string(calls[3]), `"toolCalls":[{"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	cp.State.Calls = []thread.Call{{ID: id, Name: "charge", Run: "r1"}}
	head := looptest.Must(db.Head(t.Context(), looptest.KeyOf("t")))(t)
	err = db.Commit(t.Context(), &store.Commit{
		Key:       head.Key,
		ID:        "hole",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		UpdatedAt: head.UpdatedAt,
		Forget: []string{
			stored[4].ID,
		},
		Put: []store.Value{{Kind: store.KindCheckpoint, ID: at.ID, Data: thread.MustJSON(cp)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	j.Take()
	got := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: at.ID, Thread: "saved"}))(t)
	if len(got.Effects) != 1 || got.Effects[0].Tool != "charge" || !got.EffectsIncomplete {
		t.Errorf("the effects are %+v", got)
	}
	looptest.Succeeded(t, looptest.Resumed(t, e, "saved", "f1"))
	if did := j.Take(); len(did) != 0 {
		t.Errorf("the fork called %q", did)
	}
}

// TestPoisonedStates: whatever a state holds, every operation on its thread gets an error that
// says so, and never a panic.
func TestPoisonedStates(t *testing.T) {
	for name, c := range badStates {
		t.Run(name, func(t *testing.T) {
			e, db := threeThreads(t, nil)
			setState(t, db, "b", c.state)
			code := c.code
			if code == "" {
				code = codes.CheckpointUnreadable
			}
			_, posted := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("b", "r9", looptest.UserSays("u9", "more")))
			_, resumed := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("b", "r9"))
			_, read := e.Messages(t.Context(), looptest.Alice, "b")
			for what, err := range map[string]error{"post": posted, "resume": resumed, "messages": read} {
				if looptest.Code(err) != code {
					t.Errorf("%s: %v, want %s", what, err, code)
				}
			}
			travel := threads.Travel{Checkpoint: "000000000001"}
			_, attached := e.Owner.Attach(t.Context(), looptest.Alice, "b", 0)
			_, cancelled := e.Owner.Cancel(t.Context(), looptest.Alice, "b", "r")
			_, state := e.Keeper.State(t.Context(), looptest.Alice, "b")
			_, forked := e.Keeper.Fork(t.Context(), looptest.Alice, "b", travel)
			_, rewound := e.Keeper.Rewind(t.Context(), looptest.Alice, "b", travel)
			_, pruned := e.Keeper.Prune(t.Context(), looptest.Alice, "b", "", 1, true)
			for what, err := range map[string]error{"attach": attached, "cancel": cancelled, "state": state,
				"fork": forked, "rewind": rewound, "prune": pruned} {
				if err != nil && looptest.Code(err) != code && looptest.Code(err) != codes.NotFound {
					t.Errorf("%s: %v, want %s", what, err, code)
				}
			}
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("a", "r9")); err != nil {
				t.Errorf("another thread: %v", err)
			}
		})
	}
}

// TestWentBackHasNotFailed: a thread that stands in the middle of a run says how to go on,
// and not that it failed.
func TestWentBackHasNotFailed(t *testing.T) {
	e, _ := looptest.Travelled(t)
	at := looptest.Checkpoints(t, e, "t")[1].ID
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: at, Thread: "t2"}))(t)
	back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: at}))(t)
	for _, info := range []threads.Info{fork.Thread, back.Thread,
		*looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t2"))(t)} {
		if info.Status != threads.StatusStopped || info.Outcome != "" || info.Code != "" ||
			!strings.Contains(info.Text, "went back to iteration 1") {
			t.Errorf("%+v", info)
		}
	}
	detail := looptest.Must(e.Keeper.Checkpoint(t.Context(), looptest.Alice, "t2", fork.Checkpoint.ID))(t)
	if detail.Outcome != "" || detail.Code != "" || detail.Text == "" {
		t.Errorf("its checkpoint reads %q %q %q", detail.Outcome, detail.Code, detail.Text)
	}
	if runs := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t2", "", 0))(t); len(runs) != 1 ||
		runs[0].Outcome != "" || runs[0].Code != "" {
		t.Errorf("its runs read %+v", runs)
	}
	looptest.Succeeded(t, looptest.Resumed(t, e, "t2", "f1"))
}

// TestEverybodyListsUnreadable: the list for operators has threads that cannot be read, with
// their user. One whose user cannot be told is in nobody's list, and keeps none from being shown.
func TestEverybodyListsUnreadable(t *testing.T) {
	user := looptest.Alice.User
	for name, c := range badStates {
		if c.code == "" {
			continue
		}
		e, db := threeThreads(t, nil)
		setState(t, db, "b", c.state)
		all := upkeep.Everybody{Keeper: e.Keeper}
		for broken, want := range map[error]int{nil: 3, store.ErrUnreadable: 2} {
			db.Break(broken)
			list := looptest.Must(all.Threads(t.Context(), looptest.Alice.Tenant, time.Time{}, 10))(t)
			found := ""
			for _, info := range list {
				found += info.ID + info.User + info.Code + " "
			}
			if len(list) != want || !strings.Contains(found, "a"+user+" ") || !strings.Contains(found, "c"+user+" ") ||
				broken == nil && !strings.Contains(found, "b"+user+c.code+" ") {
				t.Errorf("%s: the list has %s", name, found)
			}
		}
		if list := looptest.Must(all.Threads(t.Context(), "another", time.Time{}, 10))(t); len(list) != 0 {
			t.Errorf("another tenant has %+v", list)
		}
	}
}

// twice is a store whose walk comes upon every thread twice.
type twice struct{ store.Store }

func (s twice) Walk(ctx context.Context, after string, limit int) ([]store.Head, string, error) {
	heads, next, err := s.Store.Walk(ctx, after, limit)
	return append(heads, heads...), next, err
}

// TestEverybodyOnce: the list for operators has each thread once, the newest first, however
// often a walk comes upon it.
func TestEverybodyOnce(t *testing.T) {
	e, db := threeThreads(t, nil)
	db.Store = twice{db.Store}
	all := upkeep.Everybody{Keeper: e.Keeper}
	for limit, want := range map[int]string{10: "c b a ", 2: "c b "} {
		found := ""
		for _, info := range looptest.Must(all.Threads(t.Context(), looptest.Alice.Tenant, time.Time{}, limit))(t) {
			found += info.ID + " "
		}
		if found != want {
			t.Errorf("%d of them are %s, want %s", limit, found, want)
		}
	}
}

// TestEverybodyByIndex: once the index is complete, the list for operators walks no more.
func TestEverybodyByIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, db := threeThreads(t, func(c *looptest.Config) { c.DataFormat = thread.Format })
		time.Sleep(5 * time.Second)
		if got := e.Keeper.Index(); !got.Complete {
			t.Fatalf("%+v", got)
		}
		synctest.Wait() // for the renewal of the lease at this second
		db.Store = walkless{db.Store}
		found := ""
		for _, info := range looptest.Must(upkeep.Everybody{Keeper: e.Keeper}.Threads(t.Context(),
			looptest.Alice.Tenant, time.Time{}, 10))(t) {
			found += info.ID + info.User + " "
		}
		user := looptest.Alice.User
		if want := "a" + user + " b" + user + " c" + user + " "; found != want {
			t.Errorf("the list has %s, want %s", found, want)
		}
	})
}

// walkless is a store that nobody walks.
type walkless struct{ store.Store }

func (walkless) Walk(context.Context, string, int) ([]store.Head, string, error) {
	return nil, "", errors.New("somebody walks")
}
