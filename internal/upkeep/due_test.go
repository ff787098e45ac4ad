package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// limit is an age at which something is removed.
const limit = 6 * time.Minute

// soon has the index alone tell what is due: the walk never comes past a thread.
func soon(keep upkeep.Retention) func(*looptest.Config) {
	return func(c *looptest.Config) {
		keep.Due = 500 * time.Millisecond
		c.Retention, c.Lease = keep, 100*time.Hour
	}
}

// goes runs the traveller's agent once.
func goes(t *testing.T, e *looptest.Engine, id, run string) {
	t.Helper()
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput(id, run, looptest.UserSays("u-"+run, "go")))
	looptest.Succeeded(t, looptest.Collect(t, reply, err))
}

// listed returns the lists of retention that have the thread.
func listed(t *testing.T, db store.Store, id string) (lists []string) {
	t.Helper()
	for _, name := range []string{store.ListDue, store.ListEnded, store.ListResting, store.ListAging} {
		for _, f := range looptest.Must(db.Find(t.Context(),
			store.Query{List: store.List{Name: name}, Limit: 100}))(t) {
			if f.Key.Thread == id {
				lists = append(lists, name)
			}
		}
	}
	return lists
}

// TestDeletedInTime: a thread is deleted within a second of its time, and not before; one that somebody
// has yet to finish stays.
func TestDeletedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, soon(upkeep.Retention{Threads: limit}), looptest.Traveller(&looptest.Notebook{}))
		goes(t, e, "idle", "r1")
		ended := time.Now()
		goes(t, e, "stopped", "r2")
		looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "stopped",
			threads.Travel{Checkpoint: looptest.Checkpoints(t, e, "stopped")[1].ID}))(t)
		time.Sleep(time.Until(ended.Add(limit - time.Second)))
		if info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "idle"))(t); info.ID != "idle" {
			t.Errorf("before its time the thread is %+v", info)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := e.Keeper.Thread(t.Context(), looptest.Alice, "idle"); looptest.Code(err) != codes.NotFound {
			t.Errorf("a second after its time the thread is still there: %v", err)
		}
		time.Sleep(limit)
		looptest.Succeeded(t, looptest.Resumed(t, e, "stopped", "r3"))
	})
}

// TestCheckpointsAgeInTime: each checkpoint is removed within a second of its time, also beside newer
// ones, except the newest; then the thread is in no list for it.
func TestCheckpointsAgeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, soon(upkeep.Retention{Checkpoints: limit}), looptest.Traveller(&looptest.Notebook{}))
		began := time.Now()
		goes(t, e, "t", "r1")
		time.Sleep(time.Until(began.Add(limit / 2)))
		goes(t, e, "t", "r2")
		for _, c := range []struct {
			at   time.Duration
			want int
		}{
			{limit - time.Second, 6},
			{limit + 2*time.Second, 2},
			{limit*3/2 - time.Second, 2},
			{limit*3/2 + 2*time.Second, 1},
			{3 * limit, 1},
		} {
			time.Sleep(time.Until(began.Add(c.at)))
			synctest.Wait()
			if n := len(looptest.Checkpoints(t, e, "t")); n != c.want {
				t.Errorf("%s after the first there are %d checkpoints, want %d", c.at, n, c.want)
			}
		}
		if lists := listed(t, db, "t"); len(lists) != 1 || lists[0] != store.ListResting {
			t.Errorf("the thread is listed as %q", lists)
		}
		goes(t, e, "t", "r3")
		time.Sleep(limit + 2*time.Second)
		if n := len(looptest.Checkpoints(t, e, "t")); n != 1 {
			t.Errorf("after another run there are %d checkpoints", n)
		}
	})
}

// TestLostArchiveInTime: a log that a dead process has left is archived within a second of its time, and
// a thread that is too large is pruned then.
func TestLostArchiveInTime(t *testing.T) {
	for name, keep := range map[string]upkeep.Retention{"archived": {}, "pruned": {PruneBytes: 1000}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := memstore.New()
				dead := looptest.Start(t, db, func(c *looptest.Config) { c.ArchiveAfter = 1000 * time.Hour },
					looptest.Traveller(&looptest.Notebook{}))
				goes(t, dead, "t", "r")
				ended := time.Now()
				e := looptest.Start(t, db, soon(keep), looptest.Traveller(&looptest.Notebook{}))
				key := store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}
				time.Sleep(time.Until(ended.Add(time.Minute - time.Millisecond)))
				if _, err := db.Value(t.Context(), key, store.KindLog, "r"); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("the log is archived too early: %v", err)
				}
				time.Sleep(1001 * time.Millisecond)
				synctest.Wait()
				if _, err := db.Value(t.Context(), key, store.KindLog, "r"); err != nil {
					t.Errorf("the log was not archived: %v", err)
				}
				if n := len(looptest.Checkpoints(t, e, "t")); (n == 1) != (keep.PruneBytes > 0) {
					t.Errorf("there are %d checkpoints", n)
				}
				if lists := listed(t, db, "t"); len(lists) == 0 || lists[0] != store.ListResting {
					t.Errorf("the thread is listed as %q", lists)
				}
			})
		})
	}
}

// TestLagIsTold: each thread that something is due for is told with how late it was found, once, and so
// is what cannot be done; the latest of the last minute is known.
func TestLagIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		late, left := map[string]int{}, map[string]int{}
		e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
			soon(upkeep.Retention{Threads: limit})(c)
			c.Observer = observe.Observer{IndexLooked: func(look observe.IndexLook) {
				mu.Lock()
				defer mu.Unlock()
				late[look.List] += len(look.Late)
				left[look.List] = max(left[look.List], look.Left)
				for _, d := range look.Late {
					if d > time.Second {
						t.Errorf("the list %s was %s late", look.List, d)
					}
				}
			}}
		}, looptest.Traveller(&looptest.Notebook{}))
		goes(t, e, "t", "r")
		if lag := e.Keeper.IndexLag(); lag != 0 {
			t.Errorf("before anything is due the lag is %s", lag)
		}
		time.Sleep(limit + time.Second)
		synctest.Wait()
		if lag := e.Keeper.IndexLag(); lag <= 0 || lag > time.Second {
			t.Errorf("the lag is %s", lag)
		}
		mu.Lock()
		if late[store.ListResting] != 1 || left[store.ListResting] != 0 || late[store.ListDue] != 0 {
			t.Errorf("told of %v, left %v", late, left)
		}
		mu.Unlock()
		time.Sleep(3 * time.Minute)
		if lag := e.Keeper.IndexLag(); lag != 0 {
			t.Errorf("after minutes the lag is %s", lag)
		}
	})
}

// TestNothingDueIsRead: threads that are due later are not read.
func TestNothingDueIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := &counted{Store: memstore.New()}
		e := looptest.Start(t, reads, soon(upkeep.Retention{Threads: 5 * limit, Checkpoints: 4 * limit}),
			looptest.Traveller(&looptest.Notebook{}))
		goes(t, e, "t", "r")
		time.Sleep(2 * time.Minute)
		reads.heads.Store(0)
		time.Sleep(3 * limit)
		if n := reads.heads.Load(); n != 0 {
			t.Errorf("its head was read %d times", n)
		}
	})
}

// resting writes n threads, each of which rests since a millisecond after the one before.
func resting(t *testing.T, db store.Store, tenant string, n int, since time.Time) {
	t.Helper()
	for i := range n {
		st := thread.New()
		c := &store.Commit{
			Key:       store.ThreadKey{Tenant: tenant, Thread: fmt.Sprint(i)},
			User:      "bob",
			ID:        fmt.Sprint("c", i),
			Expect:    store.Position{Next: 1},
			Fence:     store.Fence{Epoch: 1, Nonce: "n"},
			UpdatedAt: since.Add(time.Duration(i) * time.Millisecond),
		}
		st.Tidied, st.Measured = 1, true
		thread.Save(c, st)
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBacklogGivesWay: what has become due long ago is done at once, or more slowly while this process has
// runs. Threads that become due meanwhile do not wait for it.
func TestBacklogGivesWay(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const backlog = 2400
			db, answers := memstore.New(), make(chan struct{})
			began := time.Now()
			resting(t, db, "old", backlog, began.Add(-2*limit))
			resting(t, db, "fresh", 1, began.Add(time.Second-limit))
			e := looptest.Start(t, db, soon(upkeep.Retention{Threads: limit}), holdfast.Agent{
				Name: "a",
				Model: holdfast.ModelFunc(func(context.Context,
					*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					<-answers
					return func(yield func(holdfast.Delta, error) bool) { yield(holdfast.Delta{Text: "hello"}, nil) }
				}),
			})
			if busy {
				reply := looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r", looptest.UserSays("u", "go"))))(t)
				defer func() {
					close(answers)
					looptest.Collect(t, reply, nil)
				}()
			}
			left := func(at time.Duration) map[string]int {
				time.Sleep(time.Until(began.Add(at)))
				synctest.Wait()
				left := map[string]int{}
				for _, f := range looptest.Must(db.Find(t.Context(), store.Query{
					List:  store.List{Name: store.ListResting},
					Limit: 2 * backlog,
				}))(t) {
					left[f.Key.Tenant]++
				}
				return left
			}
			if n := left(990 * time.Millisecond); (n["old"] > backlog/2) != busy || n["fresh"] != 1 {
				t.Errorf("busy %t: after a look %v are left", busy, n)
			}
			if n := left(1600 * time.Millisecond); (n["old"] > 0) != busy || n["fresh"] != 0 {
				t.Errorf("busy %t: after half a second more %v are left", busy, n)
			}
			if n := left(4 * time.Second); n["old"] != 0 {
				t.Errorf("busy %t: in the end %v are left", busy, n)
			}
		})
	}
}
