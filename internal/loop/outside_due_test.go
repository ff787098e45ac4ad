package loop_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/indexing"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// dueAlone has only the index tell what is due: retention never comes past a thread.
func dueAlone(c *looptest.Config) { c.Retention.Due = 500 * time.Millisecond }

// resting puts a thread into a store that nobody runs, with these open calls of an agent.
func resting(t *testing.T, s store.Store, id, agent string, calls ...thread.Call) {
	t.Helper()
	st := thread.New()
	err := st.Begin("r0", agent)
	if err == nil {
		err = st.End(holdfast.OutcomeSuccess)
	}
	if err != nil {
		t.Fatal(err)
	}
	st.Calls = calls
	c := &store.Commit{
		Key:       store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: id},
		ID:        "c-" + id,
		Expect:    store.Position{Next: 1},
		User:      looptest.Alice.User,
		Fence:     store.Fence{Epoch: 1, Nonce: "f"},
		UpdatedAt: time.Now(),
	}
	thread.Save(c, st)
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// readsOfHeads is a store that counts how often a head is read.
type readsOfHeads struct {
	*memstore.Store
	n atomic.Int64
}

func (r *readsOfHeads) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	r.n.Add(1)
	return r.Store.Head(ctx, key)
}

// TestOutsideExpiresInTime: beside ten thousand threads that rest, a call expires within a second
// of its time, and none of the others is looked at.
func TestOutsideExpiresInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readsOfHeads{Store: memstore.New()}
		for n := range 10_000 {
			resting(t, s, fmt.Sprint("rests", n), "a")
		}
		looptest.Must(s.Progress(t.Context(), indexing.Completed()))(t) // it has all of them
		e := looptest.Start(t, s, func(c *looptest.Config) { withURLs(c); dueAlone(c) },
			outsideAgent(finance(&postbox{}, holdfast.Outside{ExpiresAfter: time.Second})))
		waitingFor(t, looptest.Started(t, e, "t"))
		before := s.n.Load()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := s.n.Load() - before; n > 20 {
			t.Errorf("heads were read %d times", n)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+thread.TextExpired, "assistant:done")
	})
}

// TestDueBesideStuck: threads that are due and cannot go on, since their agent is not here, keep no
// other waiting, wherever among them it is, and are not tried again and again.
func TestDueBesideStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readsOfHeads{Store: memstore.New()}
		const stuck = 1000
		expires := func(d time.Duration) thread.Call {
			return thread.Call{ID: "c", Name: "approve",
				Outside: &thread.OutsideCall{Waits: true, ExpiresAt: time.Now().Add(d)}}
		}
		for n := range stuck {
			resting(t, s, fmt.Sprint("stuck", n), "gone", expires(time.Duration(n%2)*5*time.Second))
		}
		e := looptest.Start(t, s, func(c *looptest.Config) { withURLs(c); dueAlone(c) },
			outsideAgent(finance(&postbox{}, holdfast.Outside{ExpiresAfter: 3 * time.Second})))
		waitingFor(t, looptest.Started(t, e, "t"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		looptest.WantTexts(t, e, "t", "user:go", "assistant:", "tool:"+thread.TextExpired, "assistant:done")
		s.n.Store(0)
		time.Sleep(20 * time.Second)
		if n := s.n.Load(); n > 6*3*stuck {
			t.Errorf("the heads of %d threads that cannot go on were read %d times in 20 s", stuck, n)
		}
	})
}

// TestDueIsMended: a thread that is in the list by mistake, because a version before has not taken
// it out, is taken out.
func TestDueIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		resting(t, s, "t", "a", thread.Call{ID: "c", Outside: &thread.OutsideCall{Waits: true, ExpiresAt: time.Now()}})
		head := looptest.Must(s.Head(t.Context(), store.ThreadKey{Tenant: looptest.Alice.Tenant, Thread: "t"}))(t)
		st := looptest.Must(thread.DecodeState(head.State))(t)
		st.Calls = nil
		if err := s.Commit(t.Context(), &store.Commit{
			Key: head.Key, ID: "c2", Expect: head.Position(), User: head.User, Fence: head.Fence,
			UpdatedAt: head.UpdatedAt,
			State:     st.Encode(),
		}); err != nil {
			t.Fatal(err)
		}
		list := store.Query{List: store.List{Name: store.ListDue}, Limit: 1}
		if found := looptest.Must(s.Find(t.Context(), list))(t); len(found) != 1 {
			t.Fatal("the list does not have the thread")
		}
		looptest.Start(t, s, dueAlone, outsideAgent(finance(&postbox{}, holdfast.Outside{})))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if found := looptest.Must(s.Find(t.Context(), list))(t); len(found) != 0 {
			t.Error("the list still has it")
		}
		if after := looptest.Must(s.Head(t.Context(), head.Key))(t); !after.UpdatedAt.Equal(head.UpdatedAt) {
			t.Error("that counts as activity")
		}
	})
}

// looks is a store that keeps what was looked for, and finds nothing while it is away.
type looks struct {
	*memstore.Store
	away atomic.Bool

	mu      sync.Mutex
	queries []store.Query
	read    map[string]bool // the threads whose heads were read
}

func (l *looks) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	if l.away.Load() {
		return nil, errors.New("the store is away")
	}
	l.mu.Lock()
	l.queries = append(l.queries, q)
	l.mu.Unlock()
	return l.Store.Find(ctx, q)
}

func (l *looks) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	l.mu.Lock()
	l.read[key.Thread] = true
	l.mu.Unlock()
	return l.Store.Head(ctx, key)
}

// TestIdleLooks: while nothing is due, a server looks at the whole list once in ten seconds, and else
// at the last few seconds only, but at each moment of them.
func TestIdleLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &looks{Store: memstore.New(), read: map[string]bool{}}
		looptest.Start(t, s, dueAlone, outsideAgent(finance(&postbox{}, holdfast.Outside{})))
		time.Sleep(time.Minute)
		synctest.Wait()
		all, whole, until := map[string]int{}, map[string]int{}, map[string]time.Time{}
		for _, q := range s.queries {
			switch {
			case q.Since.IsZero():
				whole[q.Name]++
			case q.Since.After(until[q.Name]):
				t.Errorf("nobody looked from %s to %s", until[q.Name], q.Since)
			case q.Before.Sub(q.Since) > 5*time.Second:
				t.Errorf("a look goes back from %s to %s", q.Before, q.Since)
			}
			all[q.Name]++
			until[q.Name] = q.Before
		}
		for _, list := range []string{store.ListDue, store.ListEnded} {
			if whole, all := whole[list], all[list]; whole < 6 || whole > 7 || all < 60 || all > 130 {
				t.Errorf("%d looks at the list %s in a minute, %d of them at all of it", all, list, whole)
			}
		}
		if len(all) != 2 {
			t.Errorf("without limits, the lists %v are looked at", all)
		}
	})
}

// TestDueLate: a thread that comes into the list long after it was due is found by the next look at the
// whole list, and one that was due while the store was away as soon as it is back.
func TestDueLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &looks{Store: memstore.New(), read: map[string]bool{}}
		looptest.Start(t, s, func(c *looptest.Config) { withURLs(c); dueAlone(c) },
			outsideAgent(finance(&postbox{}, holdfast.Outside{})))
		expires := func(at time.Time) thread.Call {
			return thread.Call{ID: "c", Name: "approve", Outside: &thread.OutsideCall{Waits: true, ExpiresAt: at}}
		}
		time.Sleep(3 * time.Second)
		resting(t, s, "late", "a", expires(time.Now().Add(-time.Hour)))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if !s.read["late"] {
			t.Error("the one that came late was not found")
		}
		time.Sleep(time.Second)
		s.away.Store(true)
		resting(t, s, "away", "a", expires(time.Now().Add(time.Second)))
		time.Sleep(time.Minute)
		s.away.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if !s.read["away"] {
			t.Error("what was due while the store was away was not found when it was back")
		}
	})
}
