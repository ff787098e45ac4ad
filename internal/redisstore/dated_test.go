package redisstore

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// active has a commit be made at a time.
func active(at time.Time) func(*store.Commit) {
	return func(c *store.Commit) { c.UpdatedAt = at }
}

// wantThreads compares alice's threads, the last active first.
func wantThreads(t *testing.T, s *Store, before time.Time, limit int, want ...string) {
	t.Helper()
	heads, err := s.Threads(t.Context(), holdfast.Principal{Tenant: "acme", User: "alice"}, before, limit)
	var got []string
	for _, h := range heads {
		got = append(got, h.Key.Thread)
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("alice has %q, %v, want %q", got, err, want)
	}
}

// TestThreadsInSpans: a user's threads are in one set for each span of 30 days, in which a thread is
// found in the order of all of them, and moves to another one.
func TestThreadsInSpans(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	day := 24 * time.Hour
	for i, at := range []time.Duration{0, 29 * day, 30 * day, 31 * day, 400 * day} {
		advance(t, s, aThread(fmt.Sprint("t", i)), active(time.Unix(0, 0).Add(at)))
	}
	list := s.keys.threadsOf(holdfast.Principal{Tenant: "acme", User: "alice"})
	for span, want := range map[int64]int64{0: 2, 1: 2, 13: 1} {
		if n := s.client.ZCard(t.Context(), s.keys.span(&list, span)).Val(); n != want {
			t.Errorf("span %d has %d threads, want %d", span, n, want)
		}
	}
	wantThreads(t, s, time.Time{}, 10, "t4", "t3", "t2", "t1", "t0")
	wantThreads(t, s, time.Unix(0, 0).Add(31*day), 2, "t2", "t1")
	advance(t, s, aThread("t0"), active(time.Unix(0, 0).Add(32*day)))
	wantThreads(t, s, time.Time{}, 10, "t4", "t0", "t3", "t2", "t1")
	if n := s.client.ZCard(t.Context(), s.keys.span(&list, 0)).Val(); n != 1 {
		t.Errorf("the first span has %d threads, want the other one", n)
	}
	head, err := s.Head(t.Context(), aThread("t1"))
	if err == nil {
		err = s.Delete(t.Context(), aThread("t1"), head.Position())
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := s.client.Exists(t.Context(), s.keys.span(&list, 0)).Val(); n != 0 {
		t.Error("an empty span was left")
	}
}

// TestThreadsOfTheVersionBefore: what a version without an index has written is listed with all others,
// and what this version writes is listed there, too, until all servers keep the index. Then only what
// was written before is left in the set of that version, until it is mended.
func TestThreadsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	ctx, at := t.Context(), time.Now().Truncate(time.Second)
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	list := s.keys.threadsOf(alice)
	early := func() int64 { return s.client.ZCard(ctx, s.keys.active(alice)).Val() }
	advance(t, s, aThread("old"), active(at))
	for _, key := range s.client.Keys(ctx, s.keys.prefix+"span*").Val() { // that version writes none
		s.client.Del(ctx, key)
	}
	advance(t, s, aThread("a"), active(at.Add(-time.Second)))
	advance(t, s, aThread("b"), active(at.Add(time.Second)))
	wantThreads(t, s, time.Time{}, 10, "b", "old", "a")
	wantThreads(t, s, time.Time{}, 2, "b", "old")
	if n := early(); n != 3 {
		t.Errorf("the version before finds %d threads", n)
	}
	if _, err := s.Mend(ctx, aThread("a")); err != nil || early() != 3 {
		t.Errorf("mending has hidden a thread from the version before: %v", err)
	}
	if _, err := s.AgreeFormat(ctx, "p", store.FormatTerms{Reads: formatNewest}); err != nil {
		t.Fatal(err)
	}
	advance(t, s, aThread("c"), active(at.Add(2*time.Second)))
	wantThreads(t, s, time.Time{}, 10, "c", "b", "old", "a")
	for _, id := range []string{"old", "a", "b", "c"} {
		if _, err := s.Mend(ctx, aThread(id)); err != nil {
			t.Fatal(err)
		}
	}
	if n := early(); n != 0 || s.client.ZCard(ctx, s.keys.span(&list, list.of(minuteOf(at)))).Val() != 4 {
		t.Errorf("the set of the version before has %d threads", n)
	}
	wantThreads(t, s, time.Time{}, 10, "c", "b", "old", "a")
}

// TestWrongSpans: what no head confirms is left out, and removed when its commit cannot be on the way.
func TestWrongSpans(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	list := s.keys.threadsOf(alice)
	advance(t, s, aThread("real"), active(time.Now()))
	for _, w := range list.wanted(s.keys, "never", 1) {
		s.client.ZAdd(t.Context(), w.key, w.Z)
	}
	s.client.ZAdd(t.Context(), s.keys.span(&list, 0), redis.Z{Score: 1, Member: "real"})
	for range 3 {
		wantThreads(t, s, time.Time{}, 10, "real")
	}
	if n := s.client.Exists(t.Context(), s.keys.span(&list, 0)).Val(); n != 0 {
		t.Error("wrong members were left")
	}
}

// TestPageCosts: a page of a user's threads, of a tenant's and of a list executes as many commands beside
// a thousand threads, of which every second is another tenant's, as beside a hundred.
func TestPageCosts(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	if _, err := s.AgreeFormat(t.Context(), "p", store.FormatTerms{Reads: formatNewest}); err != nil {
		t.Fatal(err)
	}
	asking := store.List{Name: store.ListAsking, Tenant: "acme", Group: "alice"}
	running := store.List{Name: store.ListTenantRunning, Tenant: "acme"}
	made := 0
	add := func(n int, others bool) {
		for i := range n {
			made++
			at, key := time.Unix(int64(made)*60, 0), aThread(fmt.Sprint("t", made))
			own, every := asking, running
			if others && i%2 == 0 {
				key.Tenant, own.Tenant, every.Tenant = "other", "other", "other"
			}
			advance(t, s, key, func(c *store.Commit) {
				c.UpdatedAt, c.Listings = at, []store.Listing{{List: own, At: at}, {List: every, At: at}}
			})
		}
	}
	alice := holdfast.Principal{Tenant: "acme", User: "alice"}
	var first map[string]map[string]int
	for _, n := range []int{100, 900} {
		add(n, n > 100)
		cost := map[string]map[string]int{}
		for name, page := range map[string]func() (int, error){
			"a user's": func() (int, error) {
				heads, err := s.Threads(t.Context(), alice, time.Time{}, 20)
				return len(heads), err
			},
			"a tenant's": func() (int, error) {
				heads, err := s.Everybody(t.Context(), "acme", time.Time{}, 20)
				return len(heads), err
			},
			"questions": func() (int, error) {
				found, err := s.Find(t.Context(), store.Query{List: asking, Newest: true, Limit: 20})
				return len(found), err
			},
			"those of a tenant that run": func() (int, error) {
				found, err := s.Find(t.Context(), store.Query{List: running, Newest: true, Limit: 20})
				return len(found), err
			},
		} {
			cost[name] = executed(t, s, func() {
				if n, err := page(); n != 20 || err != nil {
					t.Errorf("%s: %d threads, %v", name, n, err)
				}
			})
		}
		if first == nil {
			first = cost
		}
		for name := range cost {
			if !maps.Equal(cost[name], first[name]) || cost[name]["hmget"] > 40 {
				t.Errorf("%s, beside %d threads: %v, beside 100: %v", name, made, cost[name], first[name])
			}
		}
	}
}
