package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// restingThreads is how many threads rest, and dueThreads how many have a call that expires.
func restingThreads() int {
	if n, err := strconv.Atoi(os.Getenv("RESTING")); err == nil && measured() {
		return n
	}
	return either(300, 1_000_000)
}

func dueThreads() int { return either(20, 10_000) }

// rest writes threads that rest, through the contract of the store.
func rest(t *testing.T, s store.Store, n int) {
	t.Helper()
	active := time.Now().Add(-48 * time.Hour)
	routine.Each(n, atOnce, func(i int) {
		st := thread.New()
		c := &store.Commit{
			Key:       store.ThreadKey{Tenant: "rests", Thread: fmt.Sprint("t", i)},
			User:      fmt.Sprint("u", i%1000),
			ID:        fmt.Sprint("c", i),
			Expect:    store.Position{Next: 1},
			Fence:     store.Fence{Epoch: 1, Nonce: "n"},
			UpdatedAt: active.Add(time.Duration(i) * time.Millisecond),
		}
		st.Tidied, st.Measured = 1, true
		thread.Save(c, st)
		if err := s.Commit(context.WithoutCancel(t.Context()), c); err != nil {
			t.Error(err)
		}
	})
}

// keeping starts a server on a store.
func keeping(
	t *testing.T, s store.Store, now clock.Shared, keep time.Duration, seen observe.Observer, agents ...holdfast.Agent,
) *looptest.Engine {
	t.Helper()
	return looptest.Start(t, s, func(c *looptest.Config) {
		c.Log = slog.New(slog.DiscardHandler)
		c.Lease, c.MaxRuns, c.StoreTimeout = lease, 20_000, 10*time.Second
		c.Random, c.NewID, c.Now, c.Observer = rand.Float64, clock.NewIDs(now), now, seen
		c.StopOnStoreFailure = true
		c.FinishURL = func(token string) string { return "https://agents.example/calls?token=" + token }
		c.Retention = upkeep.Retention{Every: 10 * time.Second, Due: 500 * time.Millisecond, Threads: keep}
	}, agents...)
}

// runs posts runs one after the other until done is closed, and returns how long each took.
func runs(t *testing.T, e *looptest.Engine, name string, n int, done <-chan struct{}) (took []time.Duration) {
	t.Helper()
	for i := range n {
		select {
		case <-done:
			return took
		default:
		}
		began := time.Now()
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(fmt.Sprint(name, i), "r", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		took = append(took, time.Since(began))
	}
	return took
}

// TestDueDeletion: one process deletes all threads that have become too old, and another tenant goes on
// working meanwhile.
func TestDueDeletion(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{
		"embedded": func(t *testing.T) store.Store {
			return looptest.Must(filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{}))(t)
		},
		"Redis": func(t *testing.T) store.Store {
			s, _ := open(t, redistest.Start(t), 16)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := open(t), restingThreads()
			now := clock.Wall
			if timed, is := s.(store.Clock); is {
				now = clock.Steady(timed.Now)
			}
			began := time.Now()
			rest(t, s, n)
			wrote := time.Since(began)
			agent := holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "hello"})}
			quiet := runs(t, keeping(t, s, now, 0, observe.Observer{}, agent), "q", either(20, 500), nil)
			var mu sync.Mutex
			left, done := n, make(chan struct{})
			began = time.Now()
			e := keeping(t, s, now, 24*time.Hour, observe.Observer{IndexLooked: func(look observe.IndexLook) {
				mu.Lock()
				defer mu.Unlock()
				if look.List != store.ListResting || left == 0 {
					return
				}
				if left = max(left-len(look.Late), 0); left == 0 {
					close(done)
				}
			}}, agent)
			beside := runs(t, e, "b", 1_000_000, done)
			<-done
			took := time.Since(began)
			found, err := s.Find(t.Context(), store.Query{List: store.List{Name: store.ListResting}, Limit: 10,
				Before: time.Now().Add(-24 * time.Hour)})
			if err != nil || len(found) > 0 {
				t.Errorf("%d threads are left, %v", len(found), err)
			}
			t.Logf("| deletion, %s | %d threads (written in %.0f s) | %.0f a second | %d runs of another "+
				"tenant: p99 %s, quiet %s |", name, n, wrote.Seconds(), float64(n)/took.Seconds(), len(beside),
				p99(beside), p99(quiet))
		})
	}
}

// p99 is that of times in any order.
func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return percentile(took, 99)
}

// waiting makes threads that wait for a call from outside, which expires at that time.
func waiting(t *testing.T, e *looptest.Engine, s store.Store, n int, at time.Time) {
	t.Helper()
	routine.Each(n, atOnce, func(i int) {
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(fmt.Sprint("due", i), "r", looptest.UserSays("u1", "go")))
		if err != nil {
			t.Error(err)
			return
		}
		for range reply.Whole() { // until it waits
		}
		head, err := s.Head(t.Context(), store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: fmt.Sprint("due", i)})
		if err != nil {
			t.Error(err)
			return
		}
		st, err := thread.DecodeState(head.State)
		if err != nil || len(st.Calls) != 1 {
			t.Error("the thread does not wait", err)
			return
		}
		st.Calls[0].Outside.ExpiresAt = at
		c := &store.Commit{
			Key:       head.Key,
			User:      head.User,
			ID:        fmt.Sprint("w", i),
			Expect:    head.Position(),
			Fence:     head.Fence,
			UpdatedAt: head.UpdatedAt,
		}
		thread.Save(c, st)
		if err := s.Commit(t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}

// TestDueExpiry: calls that expire in the same second, beside threads that rest, end one run each, also
// while a server is killed.
func TestDueExpiry(t *testing.T) {
	r := redistest.Start(t)
	base, _ := open(t, r, 16)
	rest(t, base, restingThreads())
	var mu sync.Mutex
	var late []time.Duration
	ends := map[string]int{}
	left := dueThreads()
	all := make(chan struct{})
	var due time.Time
	now := clock.Steady(base.Now)
	seen := observe.Observer{
		IndexLooked: func(look observe.IndexLook) {
			mu.Lock()
			defer mu.Unlock()
			if look.List == store.ListDue {
				late = append(late, look.Late...)
			}
		},
		RunEnded: func(at holdfast.Iteration, outcome holdfast.Outcome, _ string, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if due.IsZero() || now().Time().Before(due) || outcome != holdfast.OutcomeSuccess {
				return
			}
			if ends[at.Thread]++; ends[at.Thread] == 1 {
				if left--; left == 0 {
					close(all)
				}
			}
		},
	}
	approve := contract.New[struct{}]("approve", "asks the finance department", holdfast.Outside{
		ExpiresAfter: 24 * time.Hour,
		Result:       json.RawMessage(`{"type":"object"}`),
		Deliver:      func(context.Context, holdfast.OutsideCall) error { return nil },
	})
	agent := holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("approve", `{}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{approve},
	}
	var wires []*wire
	var engines []*looptest.Engine
	for range 3 {
		s, w := open(t, r, 16)
		wires = append(wires, w)
		engines = append(engines, keeping(t, s, now, 0, seen, agent))
	}
	at := base.Now().Add(time.Duration(either(2, 120)) * time.Second)
	waiting(t, engines[0], base, dueThreads(), at)
	if base.Now().After(at) {
		t.Fatal("it took too long to write the threads that come due")
	}
	mu.Lock()
	due = at
	mu.Unlock()
	wait.Pass(at.Sub(base.Now()) + time.Duration(either(50, 1000))*time.Millisecond)
	wires[2].cut()
	<-all
	took := base.Now().Sub(at)
	wait.Pass(time.Second)
	mu.Lock()
	defer mu.Unlock()
	for id, n := range ends {
		if n != 1 {
			t.Errorf("%s has ended %d runs", id, n)
		}
	}
	slices.Sort(late)
	t.Logf("| expiry, Redis | %d threads beside %d, 1 of 3 servers killed | found late p50 %s, p99 %s | "+
		"all runs ended after %s |", dueThreads(), restingThreads(), percentile(late, 50), percentile(late, 99),
		took.Round(time.Millisecond))
}
