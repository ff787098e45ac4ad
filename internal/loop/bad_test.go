package loop_test

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
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// orphans leaves the threads a, b and c as a process leaves them that dies in its runs, and
// returns a store in which b can be made bad.
func orphans(t *testing.T) *looptest.Bad {
	t.Helper()
	db := &looptest.Bad{Store: memstore.New(), Key: looptest.KeyOf("b")}
	first := &looptest.Mortal{Store: db}
	one := looptest.Start(t, first, nil, looptest.Wordy())
	for _, id := range []string{"a", "b", "c"} {
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(id, "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	first.Dead.Store(true)
	return db
}

// TestSweepSurvivesABadThread: a run that cannot be recovered does not keep the others
// waiting, even if reading its thread panics; the log says once why.
func TestSweepSurvivesABadThread(t *testing.T) {
	for name, spoil := range map[string]func(db *looptest.Bad){
		"panics":  func(db *looptest.Bad) { db.Panics.Store(true) },
		"damaged": func(db *looptest.Bad) { db.Break(store.ErrUnreadable) },
		"newer":   func(db *looptest.Bad) { db.Break(store.ErrVersionTooNew) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := orphans(t)
				spoil(db)
				var log bytes.Buffer
				two := looptest.Start(t, db, func(c *looptest.Config) {
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
					c.MaxRuns = 2
				}, looptest.Wordy())
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, id := range []string{"a", "c"} {
					if info := looptest.Must(two.Keeper.Thread(t.Context(), looptest.Alice,
						id))(t); info.Status != threads.StatusIdle {
						t.Errorf("thread %s is %s", id, info.Status)
					}
				}
				if n := strings.Count(log.String(), "a run could not be recovered yet"); n != 1 {
					t.Errorf("the log says %d times that b is bad:\n%s", n, log.String())
				}
			})
		})
	}
}

// damagedLists is a store whose lists are damaged: no thread can be made, nor can be said
// that there is none with a name.
type damagedLists struct {
	store.Store
	commits, names bool
}

func (d *damagedLists) Commit(ctx context.Context, c *store.Commit) error {
	if d.commits {
		return store.ErrUnreadable
	}
	return d.Store.Commit(ctx, c)
}

func (d *damagedLists) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	if d.names {
		return nil, store.ErrUnreadable
	}
	return d.Store.Head(ctx, key)
}

// TestDamagedLists: where a list is damaged that a thread needs, it is neither said that there
// is no thread nor that it would help to ask again.
func TestDamagedLists(t *testing.T) {
	for name, db := range map[string]*damagedLists{
		"no thread can be made":  {Store: memstore.New(), commits: true},
		"no thread can be found": {Store: memstore.New(), names: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := looptest.Start(t, db, nil, looptest.Wordy())
				_, err := e.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
				if code := holdfast.AsError(err).Code; code != codes.CheckpointUnreadable {
					t.Errorf("a new run gets %v, want %s", err, codes.CheckpointUnreadable)
				}
				if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t"); db.names &&
					holdfast.AsError(err).Code != codes.CheckpointUnreadable {
					t.Errorf("who asks for the thread gets %v, want %s", err, codes.CheckpointUnreadable)
				}
			})
		})
	}
}

// TestDamagedOrphanEnds: a run whose thread is damaged ends with an error that says so,
// instead of being tried again for ever; then its thread can be deleted.
func TestDamagedOrphanEnds(t *testing.T) {
	for name, damage := range map[string]func(c *store.Commit, first store.Message){
		"a hole": func(c *store.Commit, first store.Message) { c.Forget = []string{first.ID} },
		"a message without a form": func(c *store.Commit, first store.Message) {
			c.Messages = []store.Message{{ID: "x", Parent: first.ID, Data: []byte("{")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDamagedOrphan(t, damage) })
		})
	}
}

func testDamagedOrphan(t *testing.T, damage func(c *store.Commit, first store.Message)) {
	db := orphans(t)
	key := looptest.KeyOf("b")
	head := looptest.Must(db.Head(t.Context(), key))(t)
	stored := looptest.Must(db.Messages(t.Context(), key))(t)
	c := &store.Commit{
		Key:       key,
		ID:        "damage",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		Process:   head.Process,
		UpdatedAt: head.UpdatedAt,
	}
	damage(c, stored[0])
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	two := looptest.Start(t, db, nil, looptest.Wordy())
	time.Sleep(time.Minute)
	synctest.Wait()
	info := looptest.Must(two.Keeper.Thread(t.Context(), looptest.Alice, "b"))(t)
	if info.Status != threads.StatusStopped || info.Code != codes.CheckpointUnreadable ||
		!strings.Contains(info.Text, `thread "b"`) {
		t.Errorf("%+v", info)
	}
	if n, err := two.Keeper.Delete(t.Context(), looptest.Alice, "b", "", false); n != 1 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// TestSlotIsFreeAfterAPanic: a run that panics before it is launched leaves its place to
// the next one.
func TestSlotIsFreeAfterAPanic(t *testing.T) {
	var fail atomic.Bool
	fail.Store(true)
	e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
		c.MaxRuns = 2
		c.Observer = observe.Observer{RunStarted: func(at holdfast.Iteration, _ bool, _ int) {
			if fail.Load() && at.Thread == "bad" {
				panic("an observer's mistake")
			}
		}}
	}, looptest.Wordy())
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			_, _ = e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("bad", "r1", looptest.UserSays("u1", "go")))
		}()
	}
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("good", "r1", looptest.UserSays("u1", "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
	fail.Store(false)
	looptest.Succeeded(t, looptest.Resumed(t, e, "bad", "r2"))
}

// vanishing is a store in which a thread is deleted between two reads, once.
type vanishing struct {
	store.Store
	gone bool
}

func (v *vanishing) Messages(ctx context.Context, key store.ThreadKey) ([]store.Message, error) {
	if v.gone {
		head, err := v.Head(ctx, key)
		v.gone = false
		if err == nil {
			err = v.Delete(ctx, key, head.Position())
		}
		if err != nil {
			return nil, err
		}
	}
	return v.Store.Messages(ctx, key)
}

// Value reads nothing of a thread that was deleted before.
func (v *vanishing) Value(ctx context.Context, key store.ThreadKey, kind store.Kind, id string) ([]byte, error) {
	if v.gone && kind == store.KindBlob {
		if _, err := v.Messages(ctx, key); err != nil {
			return nil, err
		}
	}
	return v.Store.Value(ctx, key, kind, id)
}

func (v *vanishing) Post(ctx context.Context, key store.ThreadKey, item store.InboxItem) error {
	return errors.Join(v.Store.Post(ctx, key, item), store.ErrNotFound)
}

// TestDeletedMeanwhile: a thread that is deleted while a request reads it is not there, or
// starts again; the store is not blamed.
func TestDeletedMeanwhile(t *testing.T) {
	db := &vanishing{Store: memstore.New()}
	e := looptest.Start(t, db, nil, looptest.Wordy())
	begin := func() {
		t.Helper()
		db.gone = false
		in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))
		in.State = []byte(`{"n":1}`)
		looptest.Succeeded(t, looptest.Posted(t, e, in))
		db.gone = true
	}
	begin()
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "more"))))
	calls := map[string]func() error{
		"messages": func() error { _, err := e.Messages(t.Context(), looptest.Alice, "t"); return err },
		"attach":   func() error { _, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", 0); return err },
		"fork": func() error {
			_, err := e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{})
			return err
		},
		"rewind": func() error {
			_, err := e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"})
			return err
		},
		"prune": func() error { _, err := e.Keeper.Prune(t.Context(), looptest.Alice, "t", "", 1, false); return err },
		"resume": func() error {
			_, err := e.Owner.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r3"))
			return err
		},
	}
	for what, call := range calls {
		db.gone = false
		if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false); err != nil &&
			looptest.Code(err) != codes.NotFound {
			t.Fatal(err)
		}
		begin()
		want := codes.NotFound
		if what == "resume" {
			want = codes.NothingToRun
		}
		if err := call(); looptest.Code(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
}

// TestCancelOfADeletedThread: who cancels a run whose thread is deleted at that moment gets
// a 404.
func TestCancelOfADeletedThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, &vanishing{Store: memstore.New()}, nil, looptest.Wordy())
		if _, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"); looptest.Code(err) != codes.NotFound {
			t.Errorf("got %v", err)
		}
	})
}
