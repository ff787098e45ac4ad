package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
		if err := s.client.ZAdd(t.Context(), s.keys.list(l), listingMember(tag, l)).Err(); err != nil {
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

// TestReenteredMeanwhile: a reader that is about to remove a member, because no head confirms it, does not take
// it from a commit that comes just then and puts the thread in that very place.
func TestReenteredMeanwhile(t *testing.T) {
	t.Parallel()
	writer := openShared(t)
	reader := openBetween(t, writer)
	l := store.Listing{List: store.List{Name: store.ListDue}, At: time.Unix(1_000, 0)}
	tag := tag(aThread("a"))
	advance(t, writer, aThread("a"), nil)
	if err := writer.client.ZAdd(t.Context(), writer.keys.list(l), listingMember(tag, l)).Err(); err != nil {
		t.Fatal(err)
	}
	wantDue(t, reader, 1) // its commit may be on the way
	advance(t, writer, aThread("a"), nil)
	// The second pipeline reads the head that the first one's member belongs to.
	pipelines := 0
	ctx := context.WithValue(t.Context(), meanwhile{}, func() {
		if pipelines++; pipelines == 2 {
			advance(t, writer, aThread("a"), dueAt(l.At))
		}
	})
	if _, err := reader.Find(ctx, store.Query{List: l.List, Limit: 100}); err != nil || pipelines < 3 {
		t.Fatalf("%d pipelines, %v", pipelines, err)
	}
	wantDue(t, writer, 1, "a 1000")
}

// TestMadeAgainWhileUnlisted: a thread that is made again as soon as it is deleted, and before it has been taken
// off the lists, is in them afterwards.
func TestMadeAgainWhileUnlisted(t *testing.T) {
	t.Parallel()
	s, at := openShared(t), time.Unix(1_000, 0)
	made := func(c *store.Commit) { dueAt(at)(c); c.UpdatedAt = at }
	other := openBetween(t, s)
	key := aThread("a")
	advance(t, s, key, made)
	var once sync.Once
	ctx := context.WithValue(t.Context(), removed{}, func() { once.Do(func() { advance(t, s, key, made) }) })
	head, err := s.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Delete(ctx, key, head.Position()); err != nil {
		t.Fatal(err)
	}
	wantDue(t, s, 1, "a 1000")
	all, err := s.Everybody(t.Context(), "acme", time.Time{}, 10)
	if err != nil || len(all) != 1 {
		t.Errorf("the tenant has %d threads, %v, want 1", len(all), err)
	}
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
	for _, pattern := range []string{"list:*", "day*", "span*", "owned:*", "active:*", "children:*", "leases"} {
		for _, key := range s.client.Keys(t.Context(), s.keys.prefix+pattern).Val() {
			s.client.Del(t.Context(), key)
		}
	}
	wantDue(t, s, 0)
	for _, want := range []int{9, 0} {
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

// TestLookCosts: to find what has become due in the last seconds takes one command, or two where
// two sets meet, however many threads are due later, and all that is due one for each set.
func TestLookCosts(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	now := time.Now()
	for i := range 100 {
		advance(t, s, aThread(fmt.Sprint("later", i)), dueAt(now.Add(time.Duration(i+1)*partSpan*time.Millisecond)))
	}
	advance(t, s, aThread("due"), dueAt(now.Add(-time.Second)))
	look := store.Query{List: store.List{Name: store.ListDue}, Before: now, Newest: true, Limit: 100}
	for what, c := range map[string]struct {
		since time.Time
		found int
		sets  int
	}{
		"since a moment ago": {now.Add(-time.Millisecond), 0, 2},
		"for three seconds":  {now.Add(-3 * time.Second), 1, 2},
		"at any time":        {time.Time{}, 1, listParts},
	} {
		look.Since = c.since
		counts := executed(t, s, func() {
			if found, err := s.Find(t.Context(), look); len(found) != c.found || err != nil {
				t.Errorf("%d threads are due %s, %v, want %d", len(found), what, err, c.found)
			}
		})
		if counts["zrevrangebyscore"] > c.sets || total(counts) > c.sets+c.found {
			t.Errorf("to find what is due %s takes %v, want at most %d commands", what, counts, c.sets+c.found)
		}
	}
}

// TestListedInAnotherSet: a thread that a build which divided lists in another way has entered is
// found, once.
func TestListedInAnotherSet(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	at := time.Unix(1_000, 0)
	advance(t, s, aThread("a"), dueAt(at))
	l := store.Listing{List: store.List{Name: store.ListDue}, At: at}
	here := s.keys.list(l)
	for _, key := range s.keys.lists(l.List) {
		if key != here {
			s.client.ZAdd(t.Context(), key, listingMember(tag(aThread("a")), l))
		}
	}
	wantDue(t, s, listParts, "a 1000")
	s.client.ZRem(t.Context(), here, listingMember(tag(aThread("a")), l).Member)
	wantDue(t, s, listParts-1, "a 1000")
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

// TestListedByAnother: a process that moves a thread which another one has listed leaves nothing of that
// behind, whether it puts the thread into lists or takes it out of all.
func TestListedByAnother(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, two := openAt(t, server.URL(), "hf:"), openAt(t, server.URL(), "hf:")
	at := time.Unix(1_000, 0)
	advance(t, one, aThread("a"), dueAt(at))
	advance(t, two, aThread("a"), dueAt(at.Add(time.Hour)))
	wantDue(t, two, 1, "a 4600")
	advance(t, one, aThread("a"), dueAt(at.Add(time.Hour)))
	wantDue(t, one, 1, "a 4600")
	advance(t, two, aThread("a"), func(c *store.Commit) { c.Listings = []store.Listing{} })
	wantDue(t, two, 0)
}

// TestSharedBand: lists of what runs that have the same band of scores in their tenant's set are told apart, none of
// their members is taken for a wrong one, and a run is entered, and removed, by one command.
func TestSharedBand(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	of := func(user string) store.List { return store.List{Name: store.ListRunning, Tenant: "acme", Group: user} }
	var other string
	band, suffix := bandOf(of("alice"))
	for i := range 100_000 {
		if b, also := bandOf(of(fmt.Sprint("user", i))); b == band && also != suffix {
			other = fmt.Sprint("user", i)
			break
		}
	}
	every := store.List{Name: store.ListTenantRunning, Tenant: "acme"}
	at := time.Unix(1_000, 0)
	runs := func(user string) func(*store.Commit) {
		return func(c *store.Commit) {
			c.UpdatedAt, c.Listings = at, []store.Listing{{List: of(user), At: at}, {List: every, At: at}}
		}
	}
	advance(t, s, aThread("a"), runs("alice"))
	advance(t, s, aThread("b"), runs(other))
	for range 2 { // a wrong member is removed when it is seen for the second time
		s.clock.Local = func() time.Time { return time.Now().Add(hintAge + time.Minute) }
		for list, want := range map[store.List]int{of("alice"): 1, of(other): 1, of("nobody"): 0, every: 2} {
			for _, newest := range []bool{false, true} {
				q := store.Query{List: list, Before: at.Add(time.Hour), Newest: newest, Limit: 10}
				if found, err := s.Find(t.Context(), q); len(found) != want || err != nil {
					t.Errorf("%+v has %v, %v, want %d", list, found, err, want)
				}
			}
		}
	}
	ends := func(c *store.Commit) { c.UpdatedAt, c.Listings = at, []store.Listing{} }
	plain := executed(t, s, func() { advance(t, s, aThread("a"), func(c *store.Commit) { c.UpdatedAt = at }) })
	for _, change := range []func(*store.Commit){ends, runs("alice")} {
		counts := executed(t, s, func() { advance(t, s, aThread("a"), change) })
		if total(counts) > total(plain)+1 {
			t.Errorf("%v, beside %v for a commit that lists nothing", counts, plain)
		}
	}
}
