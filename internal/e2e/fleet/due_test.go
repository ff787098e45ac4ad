package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// keepResting is how long they may rest.
const keepResting = 24 * time.Hour

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
	t *testing.T, s store.Store, now clock.Shared, keep upkeep.Retention, seen observe.Observer,
	agents ...holdfast.Agent,
) *looptest.Engine {
	t.Helper()
	return looptest.Start(t, s, func(c *looptest.Config) {
		c.Log = slog.New(slog.DiscardHandler)
		c.Lease, c.MaxRuns, c.StoreTimeout = lease, 20_000, 10*time.Second
		c.Random, c.NewID, c.Now, c.Observer = rand.Float64, clock.NewIDs(now), now, seen
		c.StopOnStoreFailure = true
		c.FinishURL = func(token string) string { return "https://agents.example/calls?token=" + token }
		c.Retention = keep
	}, agents...)
}

// timed is a run.
type timed struct {
	began time.Time
	took  time.Duration
}

// runs posts runs one after the other until done is closed.
func runs(t *testing.T, e *looptest.Engine, done <-chan struct{}) (all []timed) {
	t.Helper()
	for i := 0; ; i++ {
		select {
		case <-done:
			return all
		default:
		}
		began := time.Now()
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput(fmt.Sprint("b", i), "r", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		all = append(all, timed{began, time.Since(began)})
	}
}

// between returns how long the runs took that were within the time.
func between(all []timed, from, to time.Time) (took []time.Duration) {
	for _, r := range all {
		if r.began.After(from) && r.began.Add(r.took).Before(to) {
			took = append(took, r.took)
		}
	}
	return took
}

// removing watches how all threads that rest are deleted.
type removing struct {
	s  store.Store
	mu sync.Mutex
	// began is when the first of them were, of which there were so many, and ended when the last ones were.
	began, ended time.Time
	first        int
	done         chan struct{}
	over         bool // done is closed
	err          error
}

// looked takes in what a look has found. The walks of retention and of the index delete some threads, too: it
// is the list that says that there are no more.
func (r *removing) looked(look observe.IndexLook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case look.List != store.ListResting || r.over:
	case len(look.Late) > 0:
		if r.ended = time.Now(); r.began.IsZero() {
			r.began, r.first = r.ended, len(look.Late)
		}
	case !r.began.IsZero():
		var found []store.Found
		found, r.err = r.s.Find(context.Background(), store.Query{
			List:   store.List{Name: store.ListResting},
			Before: time.Now().Add(-keepResting),
			Limit:  1,
		})
		if r.over = r.err != nil || len(found) == 0; r.over {
			close(r.done)
		}
	}
}

// TestDueDeletion: one process deletes all threads that have become too old, and another tenant goes on
// working meanwhile, as it did before that began.
func TestDueDeletion(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{
		"embedded": embedded,
		"Redis": func(t *testing.T) store.Store {
			s, _ := open(t, redistest.Start(t), 16)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := open(t), restingThreads()
			began := time.Now()
			rest(t, s, n)
			wrote := time.Since(began)
			agent := holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "hello"})}
			r := &removing{s: s, done: make(chan struct{})}
			quiet := time.Duration(either(150, 15_000)) * time.Millisecond
			e := keeping(t, s, clockOf(s), upkeep.Retention{
				Every:   10 * time.Second,
				Due:     2 * quiet, // the first look is after at least half of it
				Threads: keepResting,
			}, observe.Observer{IndexLooked: r.looked}, agent)
			began = time.Now()
			all := runs(t, e, r.done)
			if r.err != nil {
				t.Fatal(r.err)
			}
			rate := float64(n-r.first) / r.ended.Sub(r.began).Seconds()
			beside, before := between(all, r.began, r.ended), between(all, began, began.Add(quiet))
			t.Logf("| deletion, %s | %d threads (written in %.0f s) | %.0f a second | %d runs of another tenant: p99 "+
				"%s | %d before: p99 %s |", name, n, wrote.Seconds(), rate, len(beside), p99(beside), len(before),
				p99(before))
			if measured() && (rate < 1000 || p99(beside) > 3*p99(before)) {
				t.Error("the bar is 1,000 a second, while a run takes at most three times as long")
			}
		})
	}
}

// embedded opens a store of its own.
func embedded(t *testing.T) store.Store {
	s := looptest.Must(filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// clockOf is the clock for what is kept in the store.
func clockOf(s store.Store) clock.Shared {
	if timed, is := s.(store.Clock); is {
		return clock.Steady(timed.Now)
	}
	return clock.Wall
}

// p99 is that of times in any order.
func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return percentile(took, 99)
}

// waiting makes threads that wait for a call from outside, which expires at its time.
func waiting(t *testing.T, e *looptest.Engine, s store.Store, x *expiring) {
	t.Helper()
	routine.Each(len(x.due), atOnce, func(i int) {
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
		st.Calls[0].Outside.ExpiresAt = x.due[i]
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

// expiring watches how calls expire.
type expiring struct {
	mu  sync.Mutex
	now clock.Shared
	// due is when the call of each thread expires: first those that do so one by one, then the others,
	// within a second.
	due  []time.Time
	late []time.Duration // how much later the run of each of them has ended
	ends map[string]int  // by thread, as servers tell it
	// found are the threads whose run has ended, by the store, and of which no server had told that.
	found map[string]bool
	left  int
	all   chan struct{} // closed when each thread has ended a run
}

// newExpiring returns what expires around a time.
func newExpiring(now clock.Shared, at time.Time) *expiring {
	x := &expiring{now: now, ends: map[string]int{}, found: map[string]bool{}, all: make(chan struct{})}
	first := at.Add(time.Duration(either(-1, -20)) * time.Second)
	alone, together := either(10, 1000), dueThreads()
	for i := range alone {
		x.due = append(x.due, first.Add(time.Duration(i)*10*time.Millisecond))
	}
	for i := range together {
		x.due = append(x.due, at.Add(time.Duration(i)*time.Second/time.Duration(together)))
	}
	x.left, x.late = len(x.due), make([]time.Duration, len(x.due))
	return x
}

// ended takes in a run.
func (x *expiring) ended(at holdfast.Iteration, outcome holdfast.Outcome, _ string, _ time.Duration) {
	n, err := strconv.Atoi(strings.TrimPrefix(at.Thread, "due"))
	if err != nil || outcome != holdfast.OutcomeSuccess {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	late := x.now().Age(x.due[n])
	if late < 0 { // its first run, which waits
		return
	}
	if x.ends[at.Thread]++; x.ends[at.Thread] > 1 || x.found[at.Thread] {
		return
	}
	x.late[n] = late
	if x.left--; x.left == 0 {
		close(x.all)
	}
}

// wait waits until all runs have ended. The store says so of one whose server was killed between the commit
// that ended it and telling that.
func (x *expiring) wait(t *testing.T, s store.Store) {
	t.Helper()
	for range 30 {
		select {
		case <-x.all:
			return
		case <-time.After(2 * time.Second):
			x.look(t, s)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t.Fatalf("%d runs do not end", x.left)
}

// look reads the threads of which nobody has told that their run has ended.
func (x *expiring) look(t *testing.T, s store.Store) {
	t.Helper()
	for n, due := range x.due {
		id := fmt.Sprint("due", n)
		x.mu.Lock()
		told := x.ends[id] > 0 || x.found[id]
		x.mu.Unlock()
		if told {
			continue
		}
		got, err := thread.Reader{Store: s}.Head(t.Context(), looptest.KeyOf(id))
		if err != nil {
			t.Error(err)
			continue
		}
		if st := got.State; st.Running() || len(st.Calls) > 0 {
			continue
		}
		x.mu.Lock()
		if x.ends[id] == 0 {
			x.found[id] = true
			x.late[n] = got.Head.UpdatedAt.Sub(due)
			if x.left--; x.left == 0 {
				close(x.all)
			}
		}
		x.mu.Unlock()
	}
}

// TestDueExpiry: beside threads that rest, calls that expire one by one, 100 in a second, are noticed in time.
// Of 10,000 that expire in the same second each ends one run, in Redis also while a server is killed, as
// soon as the machine can run them.
func TestDueExpiry(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		s := embedded(t)
		expire(t, "embedded", s, []store.Store{s}, func() {})
	})
	t.Run("Redis", func(t *testing.T) {
		r := redistest.Start(t)
		base, _ := open(t, r, 16)
		var servers []store.Store
		var last *wire
		for range 3 {
			var s store.Store
			s, last = open(t, r, 16)
			servers = append(servers, s)
		}
		expire(t, "Redis, 1 of 3 servers killed", base, servers, last.cut)
	})
}

// expire has calls expire on servers with these stores. kill is called meanwhile.
func expire(t *testing.T, name string, base store.Store, servers []store.Store, kill func()) {
	t.Helper()
	rest(t, base, restingThreads())
	now := clockOf(base)
	at := now().Time().Add(time.Duration(either(2, 150)) * time.Second)
	x := newExpiring(now, at)
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
	var first *looptest.Engine
	for _, s := range servers {
		e := keeping(t, s, now, upkeep.Retention{Every: 10 * time.Second, Due: 500 * time.Millisecond},
			observe.Observer{RunEnded: x.ended}, agent)
		first = cmp.Or(first, e)
	}
	waiting(t, first, base, x)
	if now().Time().After(x.due[0]) {
		t.Fatal("it took too long to write the threads that come due")
	}
	wait.Pass(at.Sub(now().Time()) + time.Duration(either(50, 1000))*time.Millisecond)
	kill()
	x.wait(t, base)
	wait.Pass(time.Second)
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, n := range x.ends {
		if n != 1 {
			t.Errorf("%s has ended %d runs", id, n)
		}
	}
	alone := len(x.due) - dueThreads()
	late, together := p99(x.late[:alone]), p99(x.late[alone:])
	t.Logf("| expiry, %s | beside %d threads | %d one by one: run ended p50 %s, p99 %s late | %d in a "+
		"second: p50 %s, p99 %s |", name, restingThreads(), alone, percentile(x.late[:alone], 50), late, dueThreads(),
		percentile(x.late[alone:], 50), together)
	if measured() && late > time.Second {
		t.Error("the bar is a second")
	}
}
