package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// put returns values of one kind whose data names their ids.
func put(kind store.Kind, ids ...string) []store.Value {
	var values []store.Value
	for _, id := range ids {
		values = append(values, store.Value{Kind: kind, ID: id, Data: []byte("data of " + id)})
	}
	return values
}

// wantValues compares all values of a kind with those that put returns, newest first.
func (th *thread) wantValues(kind store.Kind, ids ...string) {
	th.t.Helper()
	th.wantList(kind, "", 0, ids...)
}

// wantList compares a page of values with those that put returns.
func (th *thread) wantList(kind store.Kind, before string, limit int, ids ...string) {
	th.t.Helper()
	got := must(th.s.Values(th.t.Context(), th.key, kind, before, limit))(th.t)
	expect(th.t, fmt.Sprintf("%d values of kind %q before %q", limit, kind, before), got, put(kind, ids...))
}

func (th *thread) wantNoValue(kind store.Kind, id string) {
	th.t.Helper()
	_, err := th.s.Value(th.t.Context(), th.key, kind, id)
	wantError(th.t, err, store.ErrNotFound)
}

func testPut(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	th.wantNoValue("k", "a")
	th.commit(func(c *store.Commit) { c.Put = put("k", "a", "b") })
	expect(t, "value", must(s.Value(t.Context(), th.key, "k", "a"))(t), []byte("data of a"))

	th.commit(func(c *store.Commit) { c.Put = []store.Value{{Kind: "k", ID: "a", Data: []byte("other")}} })
	expect(t, "value", must(s.Value(t.Context(), th.key, "k", "a"))(t), []byte("other"))

	th.commit(nil)
	th.commit(func(c *store.Commit) {
		c.Delete = []store.ValueID{{Kind: "k", ID: "a"}, {Kind: "k", ID: "never there"}, {Kind: "never", ID: "a"}}
	})
	th.wantNoValue("k", "a")
	th.wantValues("k", "b")
}

func testKinds(t *testing.T, s store.Store) {
	// If kind and id were simply concatenated, these would all be the same.
	th := create(t, s, key("t"), func(c *store.Commit) {
		c.Put = append(append(append(put("ab", "c"), put("a", "bc")...), put("abc", "")...), put("", "abc")...)
	})
	th.wantValues("ab", "c")
	th.wantValues("a", "bc")
	th.wantValues("abc", "")
	th.wantValues("", "abc")
	th.commit(func(c *store.Commit) { c.Clear = []store.Kind{"a"} })
	th.wantValues("ab", "c")
	th.wantValues("a")
	th.commit(func(c *store.Commit) { c.Clear = []store.Kind{""} })
	th.wantValues("")
	th.wantValues("abc", "")
}

func testOrder(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Put = append(put("k", "old"), put("l", "other")...) })
	th.commit(func(c *store.Commit) {
		c.Clear = []store.Kind{"k"}
		c.Put = put("k", "new", "brief")
		c.Delete = []store.ValueID{{Kind: "k", ID: "brief"}}
	})
	th.wantValues("k", "new")
	th.wantValues("l", "other")
	th.commit(func(c *store.Commit) { c.Put = append(put("k", "twice"), put("k", "twice")...) })
	th.wantValues("k", "twice", "new")
}

func testKeep(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) {
		c.Put = append(put("k", "1", "2", "3", "4"), put("l", "1", "2")...)
	})
	th.commit(func(c *store.Commit) {
		c.Put = put("k", "5", "0")
		c.Delete = []store.ValueID{{Kind: "k", ID: "4"}}
		c.Keep = map[store.Kind]int{"k": 3, "unknown": 1}
	})
	th.wantValues("k", "5", "3", "2")
	th.wantValues("l", "2", "1")
	th.commit(func(c *store.Commit) { c.Keep = map[store.Kind]int{"k": 100, "l": 1} })
	th.wantValues("k", "5", "3", "2")
	th.wantValues("l", "2")
	th.commit(func(c *store.Commit) { c.Keep = map[store.Kind]int{"k": 0} })
	th.wantValues("k")
}

func testReplaceLarge(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	for i, size := range []int{100_000, 10, 50_000, 100_000, 0, 20_000, 2000} {
		data := noise(size)
		th.commit(func(c *store.Commit) {
			c.State, c.Put = data, []store.Value{{Kind: "k", ID: "v", Data: data}}
			if i == 3 {
				c.Clear = []store.Kind{"k"}
			}
		})
		if got := must(s.Value(t.Context(), th.key, "k", "v"))(t); !bytes.Equal(got, data) {
			t.Errorf("after replacing: %d bytes, want %d", len(got), len(data))
		}
		th.check()
	}
	th.commit(func(c *store.Commit) { c.Delete = []store.ValueID{{Kind: "k", ID: "v"}} })
	th.wantNoValue("k", "v")
}
