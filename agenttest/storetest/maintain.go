package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

func maintainTests() map[string]func(*testing.T, holdfast.Store) {
	return map[string]func(*testing.T, holdfast.Store){
		"a deleted thread leaves nothing behind":      testDelete,
		"a thread that has moved is not deleted":      testDeleteMoved,
		"a deleted thread can be made again":          testDeleteAgain,
		"trimmed records are gone, numbers go on":     testTrim,
		"what a commit cannot trim":                   testTrimInvalid,
		"forgotten messages are gone":                 testForget,
		"the size tells what is there":                testSize,
		"a walk finds every thread":                   testWalk,
		"children are listed until they are deleted":  testChildren,
		"only a thread's first commit names a parent": testParentOnce,
		"a conflict names both ETags":                 testConflictError,
	}
}

// filled makes a thread with something of everything.
func filled(t *testing.T, s holdfast.Store, k holdfast.ThreadKey) *thread {
	th := create(t, s, k, func(c *holdfast.Commit) {
		c.Process = "p"
		c.State = prose(5000)
		c.Records = [][]byte{prose(10), prose(40_000)}
		c.Messages = []holdfast.StoredMessage{{ID: "a", Data: prose(10)}, {ID: "b", Parent: "a", Data: noise(40_000)}}
		for _, kind := range append(holdfast.Kinds(), "foreign", "for/eign\x00") {
			c.Put = append(c.Put, holdfast.Value{Kind: kind, ID: "1", Data: prose(10)}, holdfast.Value{Kind: kind, ID: "2", Data: noise(20_000)})
		}
	})
	th.post("i", "item")
	return th
}

func testDelete(t *testing.T, s holdfast.Store) {
	th, other := filled(t, s, key("t")), filled(t, s, key("t2"))
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	_, err := s.Head(t.Context(), th.key)
	wantError(t, err, holdfast.ErrNotFound)
	_, err = s.Size(t.Context(), th.key)
	wantError(t, err, holdfast.ErrNotFound)
	wantError(t, s.Post(t.Context(), th.key, holdfast.InboxItem{ID: "j"}), holdfast.ErrNotFound)
	expect(t, "threads", names(must(s.Threads(t.Context(), alice(), start().AddDate(1, 0, 0), 10))(t)), "[t2]")
	for _, o := range must(s.Owned(t.Context()))(t) {
		if o.Key == th.key {
			t.Error("the deleted thread is still owned")
		}
	}
	other.check()
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Errorf("deleting again: %v, want nil", err)
	}
	// The owner that does not know it yet can write no more.
	wantError(t, s.Commit(t.Context(), th.next()), holdfast.ErrFenced)
}

func names(heads []holdfast.Head) string {
	ids := make([]string, len(heads))
	for i := range heads {
		ids[i] = heads[i].Key.Thread
	}
	return fmt.Sprint(ids)
}

func testDeleteMoved(t *testing.T, s holdfast.Store) {
	th := filled(t, s, key("t"))
	old := th.head.Position()
	th.commit(nil)
	wantError(t, s.Delete(t.Context(), th.key, old), holdfast.ErrConflict)
	old.Fence = fence(7)
	wantError(t, s.Delete(t.Context(), th.key, old), holdfast.ErrFenced)
	th.check()
}

func testDeleteAgain(t *testing.T, s holdfast.Store) {
	th := filled(t, s, key("t"))
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	anew := create(t, s, key("t"), func(c *holdfast.Commit) { c.Records = [][]byte{[]byte("first")} })
	anew.check()
	expect(t, "messages", must(s.Messages(t.Context(), anew.key))(t), []holdfast.StoredMessage{})
	expect(t, "inbox", must(s.Inbox(t.Context(), anew.key))(t), []holdfast.InboxItem{})
	for _, kind := range append(holdfast.Kinds(), "foreign", "for/eign\x00") {
		expect(t, string(kind), must(s.Values(t.Context(), anew.key, kind, "", 0))(t), []holdfast.Value{})
	}
	records := must(s.Records(t.Context(), anew.key, holdfast.Cursor{}, 10))(t)
	expect(t, "records", records, []holdfast.Record{{Cursor: holdfast.Cursor{Number: 1, Tag: anew.head.Fence.Tag()}, Data: []byte("first")}})
}

func testTrim(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	var all []holdfast.Record
	for n := range 6 {
		c := th.commit(func(c *holdfast.Commit) {
			c.Records = [][]byte{fmt.Appendf(nil, "%d", n), noise(5000)}
		})
		for i, data := range c.Records {
			all = append(all, holdfast.Record{Cursor: holdfast.Cursor{Number: c.Expect.Next + uint64(i), Tag: c.Fence.Tag()}, Data: data})
		}
	}
	th.commit(func(c *holdfast.Commit) { c.Trim = 8; c.Records = [][]byte{[]byte("last")} })
	all = append(all, holdfast.Record{Cursor: holdfast.Cursor{Number: 13, Tag: th.head.Fence.Tag()}, Data: []byte("last")})
	th.check()
	expect(t, "records", must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 100))(t), all[8:])
	expect(t, "records after 9", must(s.Records(t.Context(), th.key, all[8].Cursor, 100))(t), all[9:])
	for _, gone := range []int{0, 6, 7} {
		_, err := s.Records(t.Context(), th.key, all[gone].Cursor, 100)
		wantError(t, err, holdfast.ErrCursor)
	}
	th.commit(func(c *holdfast.Commit) { c.Trim = 4 }) // trimmed before
	th.commit(func(c *holdfast.Commit) { c.Trim = 13 })
	expect(t, "an empty log", must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 100))(t), []holdfast.Record{})
	th.commit(func(c *holdfast.Commit) { c.Records = [][]byte{[]byte("more")} })
	records := must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 100))(t)
	if len(records) != 1 || records[0].Number != 14 {
		t.Errorf("after everything was trimmed the log has %v, want record 14", records)
	}
}

func testTrimInvalid(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Records = [][]byte{[]byte("r")} })
	c := th.next()
	c.Trim = 2
	wantError(t, s.Commit(t.Context(), c), holdfast.ErrInvalid)
	th.check()
}

func testForget(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) {
		c.Messages = []holdfast.StoredMessage{{ID: "a"}, {ID: "b", Parent: "a", Data: noise(40_000)}, {ID: "c", Parent: "b"}}
	})
	th.commit(func(c *holdfast.Commit) {
		c.Forget = []string{"c", "b", "no such"}
		c.Messages = []holdfast.StoredMessage{{ID: "d", Parent: "a", Data: []byte("d")}}
	})
	expect(t, "messages", must(s.Messages(t.Context(), th.key))(t), []holdfast.StoredMessage{{ID: "a"}, {ID: "d", Parent: "a", Data: []byte("d")}})
	orphan := th.next()
	orphan.Messages = []holdfast.StoredMessage{{ID: "e", Parent: "c"}}
	wantError(t, s.Commit(t.Context(), orphan), holdfast.ErrInvalid)
	th.commit(func(c *holdfast.Commit) {
		c.Messages = []holdfast.StoredMessage{{ID: "b", Parent: "d", Data: []byte("again")}}
	})
	expect(t, "messages", must(s.Messages(t.Context(), th.key))(t), []holdfast.StoredMessage{
		{ID: "a"}, {ID: "d", Parent: "a", Data: []byte("d")}, {ID: "b", Parent: "d", Data: []byte("again")},
	})
}

func testSize(t *testing.T, s holdfast.Store) {
	th := filled(t, s, key("t"))
	size := must(s.Size(t.Context(), th.key))(t)
	least := map[string]int64{holdfast.SizeRecords: 10, holdfast.SizeMessages: 40_000}
	for _, kind := range append(holdfast.Kinds(), "foreign", "for/eign\x00") {
		least[string(kind)] = 20_000 // noise does not compress
	}
	for what, want := range least {
		if size[what] < want {
			t.Errorf("%q has %d bytes, want at least %d", what, size[what], want)
		}
	}
	if len(size) != len(least) {
		t.Errorf("the size has %d entries, want %d: %v", len(size), len(least), size)
	}
	th.commit(func(c *holdfast.Commit) { c.Trim, c.Clear = 2, holdfast.Kinds() })
	size = must(s.Size(t.Context(), th.key))(t)
	if len(size) != 3 || size[holdfast.SizeRecords] != 0 {
		t.Errorf("after most was removed the size is %v", size)
	}
}

func testWalk(t *testing.T, s holdfast.Store) {
	want := map[holdfast.ThreadKey]bool{}
	for i := range 25 {
		k := holdfast.ThreadKey{Tenant: []string{"", "acme", "a/b"}[i%3], Thread: fmt.Sprintf("t/%d", i)}
		create(t, s, k, nil)
		want[k] = true
	}
	seen := map[holdfast.ThreadKey]bool{}
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

func testChildren(t *testing.T, s holdfast.Store) {
	parent := create(t, s, key("p"), nil)
	children := map[string]*thread{}
	for _, id := range []string{"c1", "c2", "c3", "c/4", "d\x00"} {
		children[id] = create(t, s, key(id), func(c *holdfast.Commit) { c.Parent = "p" })
	}
	create(t, s, holdfast.ThreadKey{Tenant: "other", Thread: "x"}, func(c *holdfast.Commit) { c.Parent = "p" })
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

func testParentOnce(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	c := th.next()
	c.Parent = "p"
	wantError(t, s.Commit(t.Context(), c), holdfast.ErrInvalid)
	own := &holdfast.Commit{Key: key("own"), ID: newID(), Expect: holdfast.Position{Next: 1}, Parent: "own"}
	wantError(t, s.Commit(t.Context(), own), holdfast.ErrInvalid)
}

func testConflictError(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	stale := th.next()
	th.commit(nil)
	var conflict *holdfast.ConflictError
	if err := s.Commit(t.Context(), stale); !errors.As(err, &conflict) || !errors.Is(err, holdfast.ErrConflict) {
		t.Fatalf("the error is %v, want a ConflictError that is ErrConflict", err)
	}
	if conflict.Expected != stale.Expect || conflict.Actual != th.head.Position() {
		t.Errorf("the conflict is %+v; the commit expected %+v, there is %+v", conflict, stale.Expect, th.head.Position())
	}
	stale.Expect.Fence = fence(9)
	if err := s.Commit(t.Context(), stale); !errors.As(err, &conflict) || !errors.Is(err, holdfast.ErrFenced) {
		t.Errorf("the error is %v, want a ConflictError that is ErrFenced", err)
	}
	th.check()
}
