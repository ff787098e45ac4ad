package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The Index role: the lists that commits name, those that follow from heads, and that nothing
// which happens to a thread leaves it in a list, or out of one, against its head.

// indexTests test [store.Index].
func indexTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"a thread is where its last commit says":     testListed,
		"a refused commit lists nothing":             testNotListed,
		"lists are apart":                            testListsApart,
		"pages by place":                             testListPages,
		"pages of long lists":                        testLongLists,
		"a deleted thread is in no list":             testListDeleted,
		"a thread made again is not where it was":    testListAgain,
		"threads of all users":                       testEverybody,
		"threads of one process":                     testOwnedList,
		"owners and their leases":                    testOwners,
		"mending finds nothing missing":              testMend,
		"the lists that a commit named":              testListedIn,
		"listings that no index can have":            testInvalidListings,
		"the progress of a walk":                     testProgress,
		"a commit by another process moves a thread": testListedByTwo,
	}
}

// due is the list that most tests use.
func due() store.List { return store.List{Name: store.ListDue} }

// listed has a commit put the thread into the due list, that long after start.
func listed(d time.Duration) func(c *store.Commit) {
	return func(c *store.Commit) { c.Listings = []store.Listing{{List: due(), At: start().Add(d)}} }
}

// wantFound compares what a list has, as "thread ms after start".
func wantFound(t *testing.T, s store.Store, q store.Query, want ...string) {
	t.Helper()
	got := []string{}
	for _, f := range must(s.Find(t.Context(), q))(t) {
		got = append(got, fmt.Sprintf("%s %d", f.Key.Thread,
			f.At.Sub(start().Truncate(time.Millisecond)).Milliseconds()))
	}
	if want == nil {
		want = []string{}
	}
	expect(t, fmt.Sprintf("the list %+v", q), got, want)
}

func testListed(t *testing.T, s store.Store) {
	all := store.Query{List: due(), Limit: 10}
	wantFound(t, s, all)
	a := create(t, s, key("a"), listed(5*time.Millisecond))
	b := create(t, s, key("b"), listed(3*time.Millisecond))
	create(t, s, key("c"), nil)
	wantFound(t, s, all, "b 3", "a 5")
	a.commit(func(c *store.Commit) { c.State = []byte("s") }) // nil leaves it where it is
	wantFound(t, s, all, "b 3", "a 5")
	a.commit(listed(-time.Hour))
	wantFound(t, s, all, "a -3600000", "b 3")
	a.commit(listed(time.Hour))
	b.commit(listed(3 * time.Millisecond))
	wantFound(t, s, all, "b 3", "a 3600000")
	b.commit(func(c *store.Commit) { c.Listings = []store.Listing{} })
	wantFound(t, s, all, "a 3600000")
	a.commit(func(c *store.Commit) { c.Listings = []store.Listing{{List: store.List{Name: "other"}}} })
	wantFound(t, s, all)
}

// testListedIn: a thread is asked in which lists it is.
func testListedIn(t *testing.T, s store.Store) {
	_, err := s.Listed(t.Context(), key("a"))
	wantError(t, err, store.ErrNotFound)
	a := create(t, s, key("a"), nil)
	expect(t, "the lists of a thread that names none", len(must(s.Listed(t.Context(), key("a")))(t)), 0)
	at := start().Add(time.Hour)
	two := []store.Listing{{List: due(), At: at}, {List: store.List{Name: "n", Tenant: "x", Group: "y"}, At: at}}
	a.commit(func(c *store.Commit) { c.Listings = two })
	a.commit(func(c *store.Commit) { c.State = []byte("s") })
	listed := must(s.Listed(t.Context(), key("a")))(t)
	for i, l := range listed {
		expect(t, "the place in a list", l.At.UnixMilli(), at.UnixMilli())
		listed[i].At = at
	}
	expect(t, "the lists of a thread", listed, two)
	a.commit(func(c *store.Commit) { c.Listings = []store.Listing{} })
	expect(t, "the lists of a thread that is in none", len(must(s.Listed(t.Context(), key("a")))(t)), 0)
}

// testListedByTwo: a process that has put a thread into a list does not take it to be there still,
// when another one has written to it since.
func testListedByTwo(t *testing.T, s store.Store) {
	a := create(t, s, key("a"), listed(time.Millisecond))
	first := a.head
	a.commit(listed(2 * time.Millisecond))
	lost := a.next()
	lost.Expect = first.Position()
	listed(time.Millisecond)(lost)
	wantError(t, s.Commit(t.Context(), lost), store.ErrConflict)
	wantFound(t, s, store.Query{List: due(), Limit: 10}, "a 2")
	a.commit(listed(time.Millisecond))
	wantFound(t, s, store.Query{List: due(), Limit: 10}, "a 1")
}

func testNotListed(t *testing.T, s store.Store) {
	a := create(t, s, key("a"), listed(time.Millisecond))
	c := a.next()
	listed(0)(c)
	c.Expect.ETag = "another"
	wantError(t, s.Commit(t.Context(), c), store.ErrConflict)
	wantFound(t, s, store.Query{List: due(), Limit: 10}, "a 1")
	b := &store.Commit{Key: key("b"), ID: newID(), Expect: a.head.Position(), Fence: a.head.Fence}
	listed(0)(b)
	if err := s.Commit(t.Context(), b); err == nil {
		t.Fatal("a thread that is not there was committed to")
	}
	wantFound(t, s, store.Query{List: due(), Limit: 10}, "a 1")
}

func testListsApart(t *testing.T, s store.Store) {
	lists := []store.List{due(), {Name: "du", Tenant: "e"}, {Name: "d", Tenant: "ue"}, {Name: "due", Group: "x"},
		{Name: "due", Tenant: "x"}, {Name: "due", Tenant: "x", Group: "x"}, {Name: "due", Tenant: "x/x"}}
	for i, l := range lists {
		create(t, s, key(fmt.Sprint("t", i)), func(c *store.Commit) {
			c.Listings = []store.Listing{{List: l, At: start()}}
		})
	}
	create(t, s, key("all"), func(c *store.Commit) {
		for _, l := range lists {
			c.Listings = append(c.Listings, store.Listing{List: l, At: start().Add(time.Millisecond)})
		}
	})
	for i, l := range lists {
		wantFound(t, s, store.Query{List: l, Limit: 10}, fmt.Sprint("t", i, " 0"), "all 1")
	}
}

func testListPages(t *testing.T, s store.Store) {
	for i, name := range []string{"e", "c", "a", "d", "b"} {
		create(t, s, key(name), listed(time.Duration(i/2)*time.Millisecond))
	}
	find := func(limit int, before time.Duration, newest bool, want ...string) {
		t.Helper()
		q := store.Query{List: due(), Newest: newest, Limit: limit}
		if before >= 0 {
			q.Before = start().Truncate(time.Millisecond).Add(before)
		}
		wantFound(t, s, q, want...)
	}
	find(10, -1, false, "c 0", "e 0", "a 1", "d 1", "b 2")
	find(3, -1, false, "c 0", "e 0", "a 1")
	find(10, -1, true, "b 2", "a 1", "d 1", "c 0", "e 0")
	find(2, -1, true, "b 2", "a 1")
	find(0, -1, true)
	find(10, 0, false)
	find(10, 1, false, "c 0", "e 0")
	find(10, time.Millisecond, true, "c 0", "e 0")
	find(10, time.Millisecond, false, "c 0", "e 0")
	find(3, 2*time.Millisecond, true, "a 1", "d 1", "c 0")
	for _, newest := range []bool{false, true} {
		for after, want := range map[time.Duration][]string{
			-time.Hour:           {"c 0", "e 0", "a 1", "d 1"},
			0:                    {"c 0", "e 0", "a 1", "d 1"},
			1:                    {"a 1", "d 1"},
			time.Millisecond:     {"a 1", "d 1"},
			2 * time.Millisecond: nil,
			time.Hour:            nil,
		} {
			if newest && len(want) == 4 {
				want = append(want[2:4:4], want[:2]...)
			}
			wantFound(t, s, store.Query{
				List:   due(),
				Since:  start().Truncate(time.Millisecond).Add(after),
				Before: start().Truncate(time.Millisecond).Add(2 * time.Millisecond),
				Newest: newest,
				Limit:  10,
			}, want...)
		}
	}
	find(10, 2*time.Millisecond+1, true, "b 2", "a 1", "d 1", "c 0", "e 0")
}

// testLongLists: a list that a store divides, because it may have very many threads, is read as one.
func testLongLists(t *testing.T, s store.Store) {
	names := []string{store.ListRunning, store.ListStopped, store.ListAsking, store.ListTenantRunning,
		store.ListTenantStopped, store.ListTenantAsking}
	const n = 40
	in := func(i int) (l []store.Listing) {
		for j, name := range names {
			list := store.List{Name: name, Tenant: "acme"}
			if j < 3 {
				list.Group = []string{"alice", "bob"}[i%2]
			}
			l = append(l, store.Listing{List: list, At: start().Add(time.Duration(i*i) * 10 * time.Second)})
		}
		return l
	}
	var all []string // of whom bob has every second
	var last *thread
	for i := range n {
		last = create(t, s, key(fmt.Sprintf("t%02d", i)), func(c *store.Commit) { c.Listings = in(i) })
		all = append([]string{last.key.Thread}, all...)
	}
	create(t, s, store.ThreadKey{Tenant: "other", Thread: "t"}, func(c *store.Commit) {
		for _, l := range in(1) {
			l.Tenant = "other"
			c.Listings = append(c.Listings, l)
		}
	})
	read := func(l store.List) (got []string) {
		for q := (store.Query{List: l, Newest: true, Limit: 7}); ; {
			found := must(s.Find(t.Context(), q))(t)
			for _, f := range found {
				got = append(got, f.Key.Thread)
				q.Before = f.At
			}
			if len(found) < q.Limit {
				return got
			}
		}
	}
	for j, l := range in(1) { // those of bob, and of the tenant
		want := all
		if j < 3 {
			want = nil
			for i := 0; i < n; i += 2 {
				want = append(want, all[i])
			}
		}
		expect(t, fmt.Sprintf("the list %+v", l.List), read(l.List), want)
	}
	last.commit(func(c *store.Commit) { c.Listings = []store.Listing{} })
	expect(t, "the list without the last", read(in(1)[3].List), all[1:])
	expect(t, "missing", must(s.Mend(t.Context(), key("t07")))(t), 0)
}

func testListDeleted(t *testing.T, s store.Store) {
	a := create(t, s, key("a"), func(c *store.Commit) {
		listed(0)(c)
		c.Process = "p"
	})
	if err := s.Delete(t.Context(), a.key, a.head.Position()); err != nil {
		t.Fatal(err)
	}
	wantFound(t, s, store.Query{List: due(), Limit: 10})
	wantFound(t, s, store.Query{List: store.Owned("p"), Limit: 10})
	expect(t, "threads of all users", len(must(s.Everybody(t.Context(), "acme", time.Time{}, 10))(t)), 0)
	expect(t, "missing", must(s.Mend(t.Context(), a.key))(t), 0)
}

func testListAgain(t *testing.T, s store.Store) {
	a := create(t, s, key("a"), listed(0))
	if err := s.Delete(t.Context(), a.key, a.head.Position()); err != nil {
		t.Fatal(err)
	}
	again := create(t, s, key("a"), nil)
	wantFound(t, s, store.Query{List: due(), Limit: 10})
	again.commit(listed(time.Millisecond))
	wantFound(t, s, store.Query{List: due(), Limit: 10}, "a 1")
}

func testEverybody(t *testing.T, s store.Store) {
	of := func(tenant, thread, user string, d time.Duration) *thread {
		return create(t, s, store.ThreadKey{Tenant: tenant, Thread: thread}, func(c *store.Commit) {
			c.User, c.UpdatedAt = user, start().Add(d)
		})
	}
	a := of("acme", "a", "alice", 0)
	of("acme", "b", "bob", time.Second)
	of("acme", "c", "", -25*time.Hour)
	of("acme", "d", "dan", 24*400*time.Hour)
	of("acme/", "e", "eve", 0)
	of("", "f", "acme", 0)
	want := func(before time.Time, limit int, names ...string) {
		t.Helper()
		got := []string{}
		for _, h := range must(s.Everybody(t.Context(), "acme", before, limit))(t) {
			got = append(got, h.Key.Thread+" "+h.User)
		}
		expect(t, fmt.Sprintf("%d threads before %s", limit, before), got, names)
	}
	want(time.Time{}, 10, "d dan", "b bob", "a alice", "c ")
	want(time.Time{}, 2, "d dan", "b bob")
	want(start().Add(time.Second), 10, "a alice", "c ")
	want(start(), 1, "c ")
	a.commit(func(c *store.Commit) { c.User, c.UpdatedAt = "amy", start().Add(time.Hour) })
	want(time.Time{}, 2, "d dan", "a amy")
	a.commit(func(c *store.Commit) { c.UpdatedAt = start().Add(-48 * time.Hour) })
	want(time.Time{}, 10, "d dan", "b bob", "c ", "a amy")
}

func testOwnedList(t *testing.T, s store.Store) {
	want := func(process string, names ...string) {
		t.Helper()
		got := []string{}
		for _, f := range must(s.Find(t.Context(), store.Query{List: store.Owned(process), Limit: 10}))(t) {
			got = append(got, f.Key.Thread)
		}
		slices.Sort(got)
		if names == nil {
			names = []string{}
		}
		expect(t, "threads of "+process, got, names)
	}
	of := func(process string) func(*store.Commit) { return func(c *store.Commit) { c.Process = process } }
	a := create(t, s, key("a"), of("p"))
	create(t, s, key("b"), of("p"))
	create(t, s, key("c"), of("q"))
	create(t, s, key("d"), nil)
	want("p", "a", "b")
	want("q", "c")
	want("")
	a.commit(of("q"))
	want("p", "b")
	want("q", "a", "c")
	a.commit(of(""))
	want("q", "c")
	expect(t, "one thread", len(must(s.Find(t.Context(), store.Query{List: store.Owned("p"), Limit: 1}))(t)), 1)
}

func testOwners(t *testing.T, s store.Store) {
	owners := func() map[string]store.Lease {
		all := map[string]store.Lease{}
		for _, o := range must(s.Owners(t.Context()))(t) {
			all[o.Process] = o.Lease
		}
		return all
	}
	expect(t, "owners of nothing", len(owners()), 0)
	if err := s.Announce(t.Context(), "p", time.Minute); err != nil {
		t.Fatal(err)
	}
	create(t, s, key("a"), func(c *store.Commit) { c.Process = "p" })
	create(t, s, key("b"), func(c *store.Commit) { c.Process = "lost" })
	all := owners()
	if l := all["p"]; !l.Alive() || l.Left > time.Minute || l.Left < 30*time.Second {
		t.Errorf("the lease of p is %+v", l)
	}
	if l, known := all["lost"]; !known || l.Alive() {
		t.Errorf("the lease of a process without one is %+v; known: %t", l, known)
	}
	if err := s.Retire(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if l, known := owners()["p"]; !known || l.Alive() || !l.Gone {
		t.Errorf("the lease of a process that has retired is %+v; known: %t", l, known)
	}
}

func testMend(t *testing.T, s store.Store) {
	a := create(t, s, key("a"), func(c *store.Commit) {
		listed(0)(c)
		c.Process = "p"
	})
	expect(t, "missing", must(s.Mend(t.Context(), a.key))(t), 0)
	expect(t, "missing of no thread", must(s.Mend(t.Context(), key("b")))(t), 0)
	a.commit(func(c *store.Commit) { c.Listings, c.User = []store.Listing{}, "bob" })
	expect(t, "missing", must(s.Mend(t.Context(), a.key))(t), 0)
	a.check()
	wantThreads(t, s, alice(), time.Time{}, 10)
	wantThreads(t, s, holdfast.Principal{Tenant: "acme", User: "bob"}, time.Time{}, 10, "a")
}

func testInvalidListings(t *testing.T, s store.Store) {
	long := make([]byte, store.MaxName+1)
	many := []store.Listing{}
	for i := range store.MaxListings + 1 {
		many = append(many, store.Listing{List: store.List{Name: fmt.Sprint(i)}})
	}
	for what, listings := range map[string][]store.Listing{
		"twice":    {{List: due()}, {List: due(), At: start()}},
		"no name":  {{}},
		"owned":    {{List: store.Owned("p")}},
		"long":     {{List: store.List{Name: "n", Group: string(long)}}},
		"too many": many,
	} {
		c := &store.Commit{Key: key("a"), ID: newID(), Expect: store.Position{Next: 1}, Listings: listings}
		if err := s.Commit(t.Context(), c); err == nil {
			t.Errorf("listings (%s) were taken", what)
		} else {
			wantError(t, err, store.ErrInvalid)
		}
	}
	create(t, s, key("a"), func(c *store.Commit) { c.Listings = many[:store.MaxListings] })
	wantFound(t, s, store.Query{List: many[3].List, Limit: 10},
		fmt.Sprint("a ", many[3].At.Sub(start().Truncate(time.Millisecond)).Milliseconds()))
}

func testProgress(t *testing.T, s store.Store) {
	expect(t, "progress at first", string(must(s.Progress(t.Context(), nil))(t)), "")
	expect(t, "progress", string(must(s.Progress(t.Context(), []byte("here")))(t)), "here")
	expect(t, "progress", string(must(s.Progress(t.Context(), nil))(t)), "here")
	_, err := s.Progress(t.Context(), make([]byte, store.MaxProgress+1))
	wantError(t, err, store.ErrInvalid)
	expect(t, "progress", string(must(s.Progress(t.Context(), []byte("\x00\xff")))(t)), "\x00\xff")
	expect(t, "progress", string(must(s.Progress(t.Context(), nil))(t)), "\x00\xff")
}
