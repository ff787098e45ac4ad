package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// limited returns limits that count in the store.
func limited(t *testing.T, s store.Store, change func(*quota.Config)) *quota.Limiter {
	cfg := quota.Config{
		Ledger:   s,
		Now:      clock.Wall,
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		Rejected: func(string, string) {},
		NewID:    func(prefix string) string { return fmt.Sprintf("%s%08d", prefix, looptest.Serial.Add(1)) },
	}
	change(&cfg)
	return quota.New(cfg)
}

// wantLimit checks that err says which limit was reached.
func wantLimit(t *testing.T, err error, resource, scope string, used, limit int64) {
	t.Helper()
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Code != codes.LimitExceeded {
		t.Fatalf("got %v", err)
	}
	for name, want := range map[string]any{"resource": resource, "scope": scope, "used": used, "limit": limit} {
		if e.Details[name] != want {
			t.Errorf("%s is %v, want %v", name, e.Details[name], want)
		}
	}
	if e.Message == "" || e.Hint == "" {
		t.Errorf("the error does not say what to do: %+v", e)
	}
}

var mallory = holdfast.Principal{Tenant: "evil", User: "mallory"}

// waits is a model that answers when its run is cancelled.
func waits() holdfast.Model {
	return holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			<-ctx.Done()
			yield(holdfast.Delta{}, ctx.Err())
		}
	})
}

// TestOneTenantDoesNotTakeAllRuns: of two tenants, one has its share of the places and no
// more, whatever it does; when a run ends, its place is free again.
func TestOneTenantDoesNotTakeAllRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		e := looptest.Start(t, s, func(c *looptest.Config) {
			c.MaxRuns = 5
			c.Limits = limited(t, s, func(q *quota.Config) { q.Share, q.Several = 2, func() bool { return true } })
		}, holdfast.Agent{Name: "a", Model: waits()})
		begin := func(who holdfast.Principal, id string) error {
			_, err := e.Owner.Post(t.Context(), who, "a", looptest.RunInput(id, "r", looptest.UserSays("u", "wait")))
			return err
		}
		for n := range 5 {
			if err := begin(mallory, fmt.Sprint("m", n)); n < 2 != (err == nil) {
				t.Errorf("run %d of mallory: %v", n, err)
			}
		}
		wantLimit(t, begin(mallory, "more"), "runs", "tenant", 2, 2)
		if err := begin(looptest.Alice, "alice"); err != nil {
			t.Errorf("another tenant has no place: %v", err)
		}
		if _, err := e.Owner.Cancel(t.Context(), mallory, "m0", "r"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := begin(mallory, "again"); err != nil {
			t.Errorf("the place of a run that has ended is not free: %v", err)
		}
	})
}

// TestSingleTenantMayTakeAllRuns: the share is for servers with several tenants.
func TestSingleTenantMayTakeAllRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		e := looptest.Start(t, s, func(c *looptest.Config) {
			c.MaxRuns = 5
			c.Limits = limited(t, s, func(q *quota.Config) { q.Share, q.Several = 1, func() bool { return false } })
		}, holdfast.Agent{Name: "a", Model: waits()})
		for n := range 5 {
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "a",
				looptest.RunInput(fmt.Sprint(n), "r", looptest.UserSays("u", "wait"))); err != nil {
				t.Errorf("run %d: %v", n, err)
			}
		}
	})
}

// TestPlacesAreGivenBack: a run that could not begin, and one that failed, take no place.
func TestPlacesAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		broken := &refusing{Store: s}
		e := looptest.Start(t, broken, func(c *looptest.Config) {
			c.Limits = limited(t, s, func(q *quota.Config) { q.PerUser.Runs, q.PerTenant.Threads = 1, 100 })
		}, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "yes"})})
		input := looptest.RunInput("t", "r", looptest.UserSays("u", "hello"))
		broken.now.Store(true)
		for range 3 {
			if _, err := e.Owner.Post(t.Context(), looptest.Alice, "a", input); err == nil {
				t.Fatal("a store that does not answer has stored a run")
			}
		}
		broken.now.Store(false)
		for n := range 3 {
			looptest.Collect(t, must(e.Owner.Post(t.Context(), looptest.Alice, "a",
				looptest.RunInput(fmt.Sprint("t", n), "r", looptest.UserSays("u", "hello")))), nil)
			synctest.Wait()
		}
	})
}

// TestThreadLimit: a tenant's and a user's threads are counted for all processes, exactly;
// runs on threads that are there, reading and deleting go on, and a deleted thread counts
// no more.
func TestThreadLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		agent := holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "yes"})}
		start := func() *looptest.Engine {
			return looptest.Start(t, s, func(c *looptest.Config) {
				c.Limits = limited(t, s, func(q *quota.Config) {
					q.PerTenant.Threads, q.PerUser.Threads = 3, 2
					q.Tenants = map[string]quota.Pair{"evil": {PerUser: quota.Bounds{Threads: 1}}}
				})
			}, agent)
		}
		one, other := start(), start()
		bob := holdfast.Principal{Tenant: looptest.Alice.Tenant, User: "bob"}
		begin := func(e *looptest.Engine, who holdfast.Principal, id, run string) error {
			reply, err := e.Owner.Post(t.Context(), who, "a",
				looptest.RunInput(id, run, looptest.UserSays("u"+run, "hello")))
			if err == nil {
				looptest.Collect(t, reply, nil)
				synctest.Wait()
			}
			return err
		}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ok(begin(one, looptest.Alice, "a1", "r"))
		ok(begin(other, looptest.Alice, "a2", "r"))
		wantLimit(t, begin(one, looptest.Alice, "a3", "r"), "threads", "user", 2, 2)
		ok(begin(other, bob, "b1", "r"))
		wantLimit(t, begin(one, bob, "b2", "r"), "threads", "tenant", 3, 3)
		_, err := one.Keeper.Fork(t.Context(), looptest.Alice, "a1", threads.Travel{})
		wantLimit(t, err, "threads", "user", 2, 2)
		ok(begin(one, mallory, "m1", "r")) // another tenant, with limits of its own
		wantLimit(t, begin(one, mallory, "m2", "r"), "threads", "user", 1, 1)

		ok(begin(one, looptest.Alice, "a1", "r2"))
		if _, err := other.Messages(t.Context(), looptest.Alice, "a2"); err != nil {
			t.Error(err)
		}
		if _, err := other.Keeper.Delete(t.Context(), looptest.Alice, "a2", "", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the clock of the test: what was gathered is written
		ok(begin(one, looptest.Alice, "a3", "r"))
	})
}

// TestByteLimit: over the limit nothing new begins, while a run goes on to its end; and
// deleting makes room.
func TestByteLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		e := looptest.Start(t, s, func(c *looptest.Config) {
			c.Limits = limited(t, s, func(q *quota.Config) { q.PerUser.Bytes = 20_000 })
		}, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: strings.Repeat("x", 30_000)})})
		begin := func(id, run string) error {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "a",
				looptest.RunInput(id, run, looptest.UserSays("u"+run, "hello")))
			if err == nil {
				events := looptest.Collect(t, reply, nil)
				if last := agui.EventType(events[len(events)-1]); last != "RUN_FINISHED" {
					t.Errorf("a run that went over the limit ended with %s", last)
				}
				synctest.Wait()
			}
			return err
		}
		if err := begin("t", "r"); err != nil {
			t.Fatal(err)
		}
		// The clock of the test: the log is archived and the thread measured. Half a second later
		// nothing else is due that counts at the same moment.
		time.Sleep(2*time.Minute + time.Second/2)
		synctest.Wait()
		info, err := e.Keeper.Thread(t.Context(), looptest.Alice, "t")
		if err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, n := range info.Size {
			size += n
		}
		wantLimit(t, begin("t", "r2"), "bytes", "user", size, 20_000)
		wantLimit(t, begin("t2", "r"), "bytes", "user", size, 20_000)
		_, err = e.Keeper.Mark(t.Context(), looptest.Alice, "t", threads.Mark{})
		wantLimit(t, err, "bytes", "user", size, 20_000)
		_, err = e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{})
		wantLimit(t, err, "bytes", "user", size, 20_000)
		_, err = upkeep.States{Keeper: e.Keeper}.Patch(t.Context(), looptest.Alice, "t",
			threads.StatePatch{Patch: json.RawMessage(`[{"op":"add","path":"/n","value":1}]`)})
		wantLimit(t, err, "bytes", "user", size, 20_000)
		if _, err := e.Keeper.Delete(t.Context(), looptest.Alice, "t", "", false); err != nil {
			t.Fatal(err)
		}
		if err := begin("t2", "r"); err != nil {
			t.Error(err)
		}
	})
}

// TestTakeoversAreNotRefused because of the limits of a tenant: its runs go on, and count.
func TestTakeoversAreNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		agent := holdfast.Agent{Name: "a", Model: waits()}
		dead := looptest.Start(t, s, nil, agent)
		for n := range 3 {
			if _, err := dead.Owner.Post(t.Context(), looptest.Alice, "a",
				looptest.RunInput(fmt.Sprint(n), "r", looptest.UserSays("u", "wait"))); err != nil {
				t.Fatal(err)
			}
		}
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := dead.Shutdown(now); !errors.Is(err, context.Canceled) ||
			!strings.Contains(err.Error(), "runs were cut off") {
			t.Errorf("a shutdown that had no time: %v", err)
		}
		e := looptest.Start(t, s, func(c *looptest.Config) {
			c.Limits = limited(t, s, func(q *quota.Config) { q.PerUser.Runs = 1 })
		}, agent)
		time.Sleep(10 * time.Second) // the clock of the test
		if e.Owner.Running() != 3 {
			t.Errorf("%d of 3 runs were taken over", e.Owner.Running())
		}
		_, err := e.Owner.Post(t.Context(), looptest.Alice, "a",
			looptest.RunInput("new", "r", looptest.UserSays("u", "wait")))
		wantLimit(t, err, "runs", "user", 3, 1)
	})
}

// TestTakeoversAreCounted: what the commit of a takeover writes belongs to the size of the
// thread, and to what its tenant uses, whether the run goes on or ends.
func TestTakeoversAreCounted(t *testing.T) {
	for name, recover := range map[string]bool{"goes on": true, "cut off": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := abandoned(t)
				before := decoded(t, running(t, s).State).Bytes
				limits := limited(t, s, func(q *quota.Config) { q.PerTenant.Bytes = 1 << 30 })
				if _, err := limits.CountDue(t.Context()); err != nil { // a later request is told no
					t.Fatal(err)
				}
				var commits []*store.Commit
				looptest.Start(t, s, func(c *looptest.Config) {
					c.Limits, c.Recover, c.ArchiveAfter = limits, recover, time.Hour
					c.Observer.Committed = func(_ holdfast.Iteration, c *store.Commit, _ time.Duration, _ error) {
						commits = append(commits, c)
					}
				}, mute())
				time.Sleep(10 * time.Second) // the clock of the test
				synctest.Wait()
				if len(commits) != 1 {
					t.Fatalf("%d commits, want one", len(commits))
				}
				wrote := thread.BytesOf(commits[0])
				if got := decoded(t, commits[0].State).Bytes - before; got != wrote || wrote == 0 {
					t.Errorf("the thread has grown by %d bytes, %d were written", got, wrote)
				}
				limits.Flush(t.Context())
				used, err := s.Used(t.Context(), looptest.Alice.Tenant, []string{"usage/bytes/added/tenant"})
				if err != nil || used[0] != wrote {
					t.Errorf("%d bytes are counted, %d were written: %v", used[0], wrote, err)
				}
			})
		})
	}
}

// decoded reads the state of a head.
func decoded(t *testing.T, state []byte) *thread.State {
	t.Helper()
	return looptest.Must(thread.DecodeState(state))(t)
}

// refusing is a store that refuses commits for a time.
type refusing struct {
	store.Store
	now atomic.Bool
}

func (s *refusing) Commit(ctx context.Context, c *store.Commit) error {
	if s.now.Load() {
		return errors.New("no")
	}
	return s.Store.Commit(ctx, c)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
