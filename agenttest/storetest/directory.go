package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The Directory role: a user's threads by their last activity, the threads of processes,
// all threads, and children.

// directoryTests test [store.Directory].
func directoryTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"threads are listed last active first":       testThreads,
		"a commit moves a thread in the list":        testThreadsMove,
		"pages by time":                              testThreadsPages,
		"a list is of one user of one tenant":        testThreadsOwner,
		"a thread changes its user":                  testThreadsUser,
		"more threads in one minute than a page":     testThreadsBusy,
		"threads of the same instant are ordered":    testThreadsTies,
		"owned threads":                              testOwned,
		"owned threads of all tenants":               testOwnedTenants,
		"a process's name is what was given":         testOwnedNames,
		"a walk finds every thread":                  testWalk,
		"children are listed until they are deleted": testChildren,
	}
}

// wantThreads compares the listed threads with their names, in order.
func wantThreads(t *testing.T, s store.Store, owner holdfast.Principal, before time.Time, limit int, names ...string) {
	t.Helper()
	var got []string
	for _, h := range must(s.Threads(t.Context(), owner, before, limit))(t) {
		got = append(got, h.Key.Thread)
	}
	expect(t, fmt.Sprintf("%d threads of %v before %s", limit, owner, before), got, names)
}

// at sets a commit's time, counted from start.
func at(d time.Duration) func(c *store.Commit) {
	return func(c *store.Commit) { c.UpdatedAt = start().Add(d) }
}

func testThreads(t *testing.T, s store.Store) {
	wantThreads(t, s, alice(), time.Time{}, 10)
	a := create(t, s, key("a"), func(c *store.Commit) {
		c.State, c.Records, c.Process = []byte("state"), [][]byte{[]byte("r")}, "p"
	})
	create(t, s, key("b"), at(time.Nanosecond))
	create(t, s, key("c"), at(-time.Second))
	create(t, s, key("d"), at(24*time.Hour))
	create(t, s, key("e"), at(-365*24*time.Hour))
	wantThreads(t, s, alice(), time.Time{}, 10, "d", "b", "a", "c", "e")
	wantThreads(t, s, alice(), time.Time{}, 2, "d", "b")
	wantThreads(t, s, alice(), time.Time{}, 0)
	want := a.head
	want.State = nil
	sameHead(t, must(s.Threads(t.Context(), alice(), time.Time{}, 10))(t)[2], want)
}

func testThreadsMove(t *testing.T, s store.Store) {
	a := create(t, s, key("a"), at(0))
	b := create(t, s, key("b"), at(time.Second))
	wantThreads(t, s, alice(), time.Time{}, 10, "b", "a")
	for i, d := range []time.Duration{2 * time.Second, 3 * time.Minute, 400 * time.Hour} {
		a.commit(at(d))
		wantThreads(t, s, alice(), time.Time{}, 10, "a", "b")
		b.commit(at(d + time.Millisecond))
		wantThreads(t, s, alice(), time.Time{}, 10, "b", "a")
		if i == 2 {
			b.commit(at(0)) // a clock that was set back
			wantThreads(t, s, alice(), time.Time{}, 10, "a", "b")
		}
	}
	// One moves past another that stays.
	create(t, s, key("still"), at(401*time.Hour))
	for _, d := range []time.Duration{402 * time.Hour, 500 * time.Hour, 401*time.Hour + 1} {
		a.commit(at(d))
		wantThreads(t, s, alice(), time.Time{}, 2, "a", "still")
		a.commit(at(time.Hour))
		wantThreads(t, s, alice(), time.Time{}, 3, "still", "a", "b")
	}
}

func testThreadsPages(t *testing.T, s store.Store) {
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("t%02d", i)
		create(t, s, key(name), at(time.Duration(i)*17*time.Second))
		want = append([]string{name}, want...)
	}
	var before time.Time
	var got []string
	for range 10 {
		page := must(s.Threads(t.Context(), alice(), before, 3))(t)
		for _, h := range page {
			got = append(got, h.Key.Thread)
			before = h.UpdatedAt
		}
	}
	expect(t, "threads, 3 at a time", got, want)
	wantThreads(t, s, alice(), start(), 10)
	wantThreads(t, s, alice(), start().Add(1), 10, "t00")
	wantThreads(t, s, alice(), start().Add(time.Hour), 1, "t19")
}

func testThreadsOwner(t *testing.T, s store.Store) {
	make := func(tenant, user, thread string) {
		create(t, s, store.ThreadKey{Tenant: tenant, Thread: thread}, func(c *store.Commit) { c.User = user })
	}
	make("acme", "alice", "mine")
	make("acme", "alic", "shorter")
	make("acme", "alicee", "longer")
	make("acme", "bob", "bob's")
	make("acm", "ealice", "joined")
	make("", "acmealice", "all of it")
	make("acme", "", "nobody's")
	make("other", "alice", "another alice's")
	wantThreads(t, s, alice(), time.Time{}, 10, "mine")
	wantThreads(t, s, holdfast.Principal{Tenant: "acme", User: "bob"}, time.Time{}, 10, "bob's")
	wantThreads(t, s, holdfast.Principal{Tenant: "acme"}, time.Time{}, 10, "nobody's")
	wantThreads(t, s, holdfast.Principal{User: "acmealice"}, time.Time{}, 10, "all of it")
	wantThreads(t, s, holdfast.Principal{Tenant: "other", User: "bob"}, time.Time{}, 10)
}

func testThreadsUser(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	th.commit(func(c *store.Commit) { c.User = "bob" })
	wantThreads(t, s, alice(), time.Time{}, 10)
	wantThreads(t, s, holdfast.Principal{Tenant: "acme", User: "bob"}, time.Time{}, 10, "t")
	th.commit(func(c *store.Commit) { c.User, c.UpdatedAt = "alice", start().Add(time.Hour) })
	wantThreads(t, s, alice(), time.Time{}, 10, "t")
	wantThreads(t, s, holdfast.Principal{Tenant: "acme", User: "bob"}, time.Time{}, 10)
}

func testThreadsBusy(t *testing.T, s store.Store) {
	minute := start().Truncate(time.Minute)
	for i := range 60 {
		create(t, s, key(fmt.Sprintf("t%02d", i)), func(c *store.Commit) {
			c.UpdatedAt = minute.Add(time.Duration(i) * time.Second)
		})
	}
	wantThreads(t, s, alice(), time.Time{}, 2, "t59", "t58")
	wantThreads(t, s, alice(), minute.Add(30*time.Second), 2, "t29", "t28")
	wantThreads(t, s, alice(), minute, 2)
	wantThreads(t, s, alice(), minute.Add(time.Minute), 1, "t59")
}

func testThreadsTies(t *testing.T, s store.Store) {
	for _, name := range []string{"b", "d", "a", "c"} {
		create(t, s, key(name), nil)
	}
	wantThreads(t, s, alice(), time.Time{}, 10, "a", "b", "c", "d")
}

// wantOwned compares the owned threads, whatever their order.
func wantOwned(t *testing.T, s store.Store, want ...store.OwnedThread) {
	t.Helper()
	expect(t, "owned threads", sortOwned(must(s.Owned(t.Context()))(t)), sortOwned(want))
}

// sortOwned sorts the threads and returns each as a text that shows where names end.
func sortOwned(owned []store.OwnedThread) []string {
	slices.SortFunc(owned, func(a, b store.OwnedThread) int {
		return cmp.Or(cmp.Compare(a.Key.Tenant, b.Key.Tenant), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	var shown []string
	for _, o := range owned {
		shown = append(shown, fmt.Sprintf("%q %q %q", o.Key.Tenant, o.Key.Thread, o.Process))
	}
	return shown
}

func testOwned(t *testing.T, s store.Store) {
	wantOwned(t, s)
	process := func(p string) func(c *store.Commit) {
		return func(c *store.Commit) { c.Process = p }
	}
	a := create(t, s, key("a"), process("p1"))
	b := create(t, s, key("b"), nil)
	wantOwned(t, s, store.OwnedThread{Key: a.key, Process: "p1"})
	b.commit(process("p2"))
	a.commit(process("p1"))
	wantOwned(t, s, store.OwnedThread{Key: a.key, Process: "p1"}, store.OwnedThread{Key: b.key, Process: "p2"})
	a.commit(process("p2"))
	wantOwned(t, s, store.OwnedThread{Key: a.key, Process: "p2"}, store.OwnedThread{Key: b.key, Process: "p2"})
	a.commit(process(""))
	wantOwned(t, s, store.OwnedThread{Key: b.key, Process: "p2"})
	b.commit(process(""))
	wantOwned(t, s)
}

func testOwnedTenants(t *testing.T, s store.Store) {
	var want []store.OwnedThread
	for i := range 10 {
		k := store.ThreadKey{Tenant: fmt.Sprint("tenant", i), Thread: "t"}
		create(t, s, k, func(c *store.Commit) { c.Process = "p" })
		want = append(want, store.OwnedThread{Key: k, Process: "p"})
	}
	wantOwned(t, s, want...)
}

func testOwnedNames(t *testing.T, s store.Store) {
	var want []store.OwnedThread
	for _, name := range oddNames() {
		k := store.ThreadKey{Tenant: name, Thread: name}
		create(t, s, k, func(c *store.Commit) { c.Process = name })
		want = append(want, store.OwnedThread{Key: k, Process: name})
	}
	wantOwned(t, s, want...)
}

func testWalk(t *testing.T, s store.Store) {
	want := map[store.ThreadKey]bool{}
	for i := range 25 {
		k := store.ThreadKey{Tenant: []string{"", "acme", "a/b"}[i%3], Thread: fmt.Sprintf("t/%d", i)}
		create(t, s, k, nil)
		want[k] = true
	}
	seen := map[store.ThreadKey]bool{}
	for after, pages := "", 0; ; pages++ {
		heads, next, err := s.Walk(t.Context(), after, 4)
		if err != nil || pages > 1000 {
			t.Fatalf("Walk, page %d: %v", pages, err)
		}
		for _, h := range heads {
			if !want[h.Key] || h.State != nil || h.Next != 1 {
				t.Errorf("the walk found %v", h)
			}
			seen[h.Key] = true
		}
		if next == "" {
			break
		}
		after = next
	}
	if len(seen) != len(want) {
		t.Errorf("the walk found %d threads of %d", len(seen), len(want))
	}
}

func testChildren(t *testing.T, s store.Store) {
	parent := create(t, s, key("p"), nil)
	children := map[string]*thread{}
	for _, id := range []string{"c1", "c2", "c3", "c/4", "d\x00"} {
		children[id] = create(t, s, key(id), func(c *store.Commit) { c.Parent = "p" })
	}
	create(t, s, store.ThreadKey{Tenant: "other", Thread: "x"}, func(c *store.Commit) { c.Parent = "p" })
	list := func(after string, limit int) []string {
		return must(s.Children(t.Context(), parent.key, after, limit))(t)
	}
	if got, want := list("", 10), []string{"c/4", "c1", "c2", "c3", "d\x00"}; !slices.Equal(got, want) {
		t.Errorf("the children are %q, want %q", got, want)
	}
	if got, want := list("c1", 2), []string{"c2", "c3"}; !slices.Equal(got, want) {
		t.Errorf("two children after c1 are %q, want %q", got, want)
	}
	c2 := children["c2"]
	if err := s.Delete(t.Context(), c2.key, c2.head.Position()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if err := s.Delete(t.Context(), parent.key, parent.head.Position()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if got, want := list("", 10), []string{"c/4", "c1", "c3", "d\x00"}; !slices.Equal(got, want) {
		t.Errorf("after c2 and the parent were deleted the children are %q, want %q", got, want)
	}
}
