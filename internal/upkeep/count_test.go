package upkeep_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Counting what tenants use, on every store: what the ledger says is compared with what
// GET /threads/{thread} says of each thread.

var bob = holdfast.Principal{Tenant: looptest.Alice.Tenant, User: "bob"}

// counting starts an engine that counts threads and bytes. It does not count everything
// by itself: that would be off by what the test changes meanwhile.
func counting(t *testing.T, s store.Store, now time.Time) (*looptest.Engine, *quota.Limiter) {
	t.Helper()
	limits := quota.New(quota.Config{
		Limits:   quota.Limits{Pair: quota.Pair{PerTenant: quota.Bounds{Threads: 1 << 20, Bytes: 1 << 40}}},
		Ledger:   s,
		Now:      func() clock.Stamp { return clock.At(now) },
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		Rejected: func(string, string) {},
		Lag:      time.Nanosecond, // nobody else changes anything meanwhile
		NewID:    func(prefix string) string { return fmt.Sprintf("%s%08d", prefix, looptest.Serial.Add(1)) },
	})
	if _, err := limits.CountDue(t.Context()); err != nil { // a later request is told no
		t.Fatal(err)
	}
	e := looptest.Start(t, s, func(c *looptest.Config) {
		c.ArchiveAfter, c.Limits = time.Hour, limits // see settled
	}, looptest.Traveller(&looptest.Notebook{}))
	return e, limits
}

// wantCounts checks that the ledger has the threads of a user's tenant and of the user,
// exactly, and their bytes within 5 %.
func wantCounts(t *testing.T, e *looptest.Engine, when string, limits ...*quota.Limiter) {
	t.Helper()
	for _, l := range limits {
		l.Flush(t.Context())
	}
	tenant := [2]int64{}
	for _, who := range []holdfast.Principal{looptest.Alice, bob} {
		list, err := e.Keeper.Threads(t.Context(), who, time.Time{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		user := [2]int64{int64(len(list)), 0}
		for _, info := range list {
			full, err := e.Keeper.Thread(t.Context(), who, info.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range full.Size {
				user[1] += n
			}
		}
		compare(t, e.Store, when, "user/"+who.User, user)
		tenant[0], tenant[1] = tenant[0]+user[0], tenant[1]+user[1]
	}
	compare(t, e.Store, when, "tenant", tenant)
}

func compare(t *testing.T, ledger store.Ledger, when, scope string, want [2]int64) {
	t.Helper()
	for i, resource := range []string{"threads", "bytes"} {
		used, err := ledger.Used(t.Context(), looptest.Alice.Tenant, []string{
			"usage/" + resource + "/added/" + scope, "usage/" + resource + "/removed/" + scope,
		})
		if err != nil {
			t.Fatal(err)
		}
		got := used[0] - used[1]
		if resource == "threads" && got != want[i] || max(got-want[i], want[i]-got) > want[i]/20 {
			t.Errorf("%s: %s of %s are counted as %d, there are %d", when, resource, scope, got, want[i])
		}
	}
}

// work makes threads of both users, and changes them in every way there is.
func work(t *testing.T, one, other *looptest.Engine, part string) {
	t.Helper()
	run := func(e *looptest.Engine, who holdfast.Principal, id, run string) {
		reply, err := e.Owner.Post(t.Context(), who, "",
			looptest.RunInput(id, run, looptest.UserSays("u"+run, strings.Repeat("go ", 700))))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	}
	for n := range 6 {
		id := fmt.Sprint(part, n)
		who := []holdfast.Principal{looptest.Alice, bob}[n%2]
		run(one, who, id, "r1")
		run(other, who, id, "r2")
		switch n {
		case 1:
			looptest.Must(one.Keeper.Mark(t.Context(), who, id,
				threads.Mark{State: []byte(`{"text":"` + strings.Repeat("state ", 2000) + `"}`)}))(t)
		case 2:
			looptest.Must(other.Keeper.Rewind(t.Context(), who, id,
				threads.Travel{Checkpoint: looptest.Checkpoints(t, other, id)[1].ID}))(t)
		case 3:
			looptest.Must(other.Keeper.Fork(t.Context(), who, id, threads.Travel{}))(t)
		case 4:
			looptest.Must(one.Keeper.Prune(t.Context(), who, id, "", 1, false))(t)
		case 5:
			looptest.Must(other.Keeper.Delete(t.Context(), who, id, "", false))(t)
		}
	}
}

// TestCounts: two processes that share a store count threads exactly and bytes within 5 %. The
// next count of everything corrects threads that were never counted, were counted twice, or
// went without being counted.
func TestCounts(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return memstore.New() },
		"file": func(t *testing.T) store.Store {
			return looptest.Must(filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{}))(t)
		},
		"redis": func(t *testing.T) store.Store {
			return looptest.Must(redisstore.Open(t.Context(), "redis://"+miniredis.RunT(t).Addr(),
				redisstore.Options{}))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() { _ = s.Close() })
			early := looptest.Start(t, s, func(c *looptest.Config) { c.ArchiveAfter = time.Hour },
				looptest.Traveller(&looptest.Notebook{}))
			work(t, early, early, "early")

			now := time.Now()
			one, limits := counting(t, s, now)
			other, others := counting(t, s, now)
			settled(t, one)
			if err := one.Keeper.Count(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, one, "limits are new", limits, others)
			work(t, one, other, "t")
			settled(t, one)
			wantCounts(t, one, "after work", limits, others)

			// Threads that this process has counted twice, and not written yet, are no change
			// that is made meanwhile; another one has removed a thread that nobody counted.
			limits.Wrote(looptest.Alice, 1<<20)
			limits.Deleted(bob, 1<<10)
			key := looptest.KeyOf("t0")
			head, err := s.Head(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(t.Context(), key, head.Position()); err != nil {
				t.Fatal(err)
			}
			if err := one.Keeper.Count(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, one, "put right", limits, others)
		})
	}
}

// settled archives all logs and measures all threads, as it happens some time after the
// last change.
func settled(t *testing.T, e *looptest.Engine) {
	t.Helper()
	for _, who := range []holdfast.Principal{looptest.Alice, bob} {
		list, err := e.Keeper.Threads(t.Context(), who, time.Time{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			if err := e.Keeper.Archive(t.Context(), store.ThreadKey{Tenant: who.Tenant, Thread: info.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
