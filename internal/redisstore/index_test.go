package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
)

// dueAt has a commit put its thread into the due list.
func dueAt(at time.Time) func(*store.Commit) {
	return func(c *store.Commit) { c.Listings = []store.Listing{{List: store.List{Name: store.ListDue}, At: at}} }
}

// found returns the due list, and members how many members its sets have.
func found(t *testing.T, s *Store) (names []string, members int64) {
	t.Helper()
	all, err := s.Find(t.Context(), store.Query{List: store.List{Name: store.ListDue}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names = append(names, fmt.Sprintf("%s %d", f.Key.Thread, f.At.Unix()))
	}
	for _, key := range s.keys.lists(store.List{Name: store.ListDue}) {
		members += s.client.ZCard(t.Context(), key).Val()
	}
	return names, members
}

func wantDue(t *testing.T, s *Store, members int64, want ...string) {
	t.Helper()
	if names, n := found(t, s); !slices.Equal(names, want) || n != members {
		t.Errorf("the list has %q and %d members, want %q and %d", names, n, want, members)
	}
}

// TestKilledBeforeTheHead: a process that dies after it has listed a thread, and before the head
// says so, leaves the thread where it was in the list. The member that it leaves is removed when a
// head that has moved shows that its commit cannot follow any more.
func TestKilledBeforeTheHead(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	at := time.Unix(1_000, 0)
	advance(t, s, aThread("a"), dueAt(at))
	for _, left := range []struct {
		thread string
		at     time.Time
	}{{"a", at.Add(time.Hour)}, {"a", at.Add(-time.Hour)}, {"never", at}} {
		l := store.Listing{List: store.List{Name: store.ListDue}, At: left.at}
		tag := tag(aThread(left.thread))
		if err := s.client.ZAdd(t.Context(), s.keys.list(l.List, tag), listingMember(tag, l)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // the commit may be on the way
		wantDue(t, s, 4, "a 1000")
	}
	advance(t, s, aThread("a"), nil)
	found(t, s)
	wantDue(t, s, 2, "a 1000")
	s.clock.Local = func() time.Time { return time.Now().Add(hintAge + time.Minute) }
	found(t, s)
	wantDue(t, s, 1, "a 1000")
}

// TestMendsWhatIsLost: a thread that Redis has lost from all lists, as after a backup of some
// keys, is found again once it is mended.
func TestMendsWhatIsLost(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	at := time.Unix(1_000, 0)
	parent := aThread("p")
	advance(t, s, parent, nil)
	advance(t, s, aThread("a"), func(c *store.Commit) {
		dueAt(at)(c)
		c.Process, c.Parent = "q", "p"
	})
	for _, pattern := range []string{"list:*", "day*", "owned:*", "active:*", "children:*", "leases"} {
		for _, key := range s.client.Keys(t.Context(), s.keys.prefix+pattern).Val() {
			s.client.Del(t.Context(), key)
		}
	}
	wantDue(t, s, 0)
	for _, want := range []int{7, 0} {
		if n, err := s.Mend(t.Context(), aThread("a")); n != want || err != nil {
			t.Errorf("%d were missing, %v, want %d", n, err, want)
		}
	}
	wantDue(t, s, 1, "a 1000")
	owned, err1 := s.Owned(t.Context())
	kids, err2 := s.Children(t.Context(), parent, "", 10)
	all, err3 := s.Everybody(t.Context(), "acme", time.Time{}, 10)
	if len(owned) != 1 || len(kids) != 1 || len(all) != 1 || errors.Join(err1, err2, err3) != nil {
		t.Errorf("owned %v, children %v, all %v: %v, %v, %v", owned, kids, all, err1, err2, err3)
	}
}

// TestIndexCosts: a commit that names the lists in which its thread is writes nothing of them, and
// one that moves it in one list writes one member before the head, and removes one.
func TestIndexCosts(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	at := time.Unix(1_000, 0)
	cost := func(change func(*store.Commit)) map[string]int {
		return executed(t, s, func() {
			advance(t, s, aThread("a"), func(c *store.Commit) {
				c.UpdatedAt = at // it does not move in the list of its user
				if change != nil {
					change(c)
				}
			})
		})
	}
	cost(dueAt(at))
	cost(nil) // Redis learns the script
	plain := cost(nil)
	for what, c := range map[string]struct {
		place time.Time
		more  int
	}{
		"the same place":       {at, 0},
		"the same millisecond": {at.Add(1), 0},
		"another place":        {at.Add(time.Second), 2},
	} {
		cost(dueAt(at))
		if counts := cost(dueAt(c.place)); total(counts) != total(plain)+c.more {
			t.Errorf("%s takes %v, want %d more than %v", what, counts, c.more, plain)
		}
	}
}

// TestDaysAreForgotten: a day that has no thread any more is not looked at in every list that is
// made later. One that has a thread again is kept.
func TestDaysAreForgotten(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	ctx := t.Context()
	on := func(day int) func(*store.Commit) {
		return func(c *store.Commit) { c.UpdatedAt = time.Unix(0, 0).AddDate(0, 0, day) }
	}
	for i, thread := range []string{"a", "b"} {
		for day := range 3 {
			advance(t, s, aThread(thread), on(day+3*i))
		}
	}
	everybody := func(days int64) {
		t.Helper()
		heads, err := s.Everybody(ctx, "acme", time.Time{}, 10)
		if err != nil || len(heads) != 2 {
			t.Errorf("%d threads, %v, want 2", len(heads), err)
		}
		if n := s.client.ZCard(ctx, s.keys.days("acme")).Val(); n != days {
			t.Errorf("%d days are kept, want %d", n, days)
		}
	}
	everybody(6) // what puts a thread into them may be on the way
	everybody(6)
	advance(t, s, aThread("b"), on(6))
	advance(t, s, aThread("b"), on(3))
	s.clock.Local = func() time.Time { return time.Now().Add(hintAge + time.Minute) }
	everybody(4) // those with a thread, and 5 and 6, which were not seen to be empty before
}

// TestOwnersOwn: a process that is gone and has left no thread behind is none of the owners, so
// nobody asks for its threads.
func TestOwnersOwn(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	ctx := t.Context()
	advance(t, s, aThread("left"), func(c *store.Commit) { c.Process = "dead" })
	if err := errors.Join(s.Announce(ctx, "lives", time.Minute), s.Announce(ctx, "gone", time.Minute),
		s.Retire(ctx, "gone")); err != nil {
		t.Fatal(err)
	}
	owners, err := s.Owners(ctx)
	var names []string
	for _, o := range owners {
		names = append(names, o.Process)
	}
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"dead", "lives"}) {
		t.Errorf("owners are %q, %v, want the one that has left a thread, and the one that lives", names, err)
	}
}
