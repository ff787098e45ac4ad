package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

func valueTests() map[string]func(*testing.T, holdfast.Store) {
	return map[string]func(*testing.T, holdfast.Store){
		"put, replace and delete":              testPut,
		"kinds are apart":                      testKinds,
		"newest first, before and limit":       testNewest,
		"clear, then put, then delete":         testOrder,
		"keep trims to the newest":             testKeep,
		"an empty value is not a missing one":  testEmptyValue,
		"pages of many values":                 testManyValues,
		"large values":                         testLargeValues,
		"a replaced value leaves nothing over": testReplaceLarge,
	}
}

// put returns values of one kind whose data are their ids.
func put(kind holdfast.Kind, ids ...string) []holdfast.Value {
	var values []holdfast.Value
	for _, id := range ids {
		values = append(values, holdfast.Value{Kind: kind, ID: id, Data: []byte("data of " + id)})
	}
	return values
}

// wantValues compares all values of a kind, given in any order.
func (th *thread) wantValues(kind holdfast.Kind, ids ...string) {
	th.t.Helper()
	th.wantList(kind, "", 0, ids...)
}

func (th *thread) wantList(kind holdfast.Kind, before string, limit int, ids ...string) {
	th.t.Helper()
	got := must(th.s.Values(th.t.Context(), th.key, kind, before, limit))(th.t)
	expect(th.t, fmt.Sprintf("%d values of kind %q before %q", limit, kind, before), got, put(kind, ids...))
}

func (th *thread) wantNoValue(kind holdfast.Kind, id string) {
	th.t.Helper()
	_, err := th.s.Value(th.t.Context(), th.key, kind, id)
	wantError(th.t, err, holdfast.ErrNotFound)
}

func testPut(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	th.wantNoValue("k", "a")
	th.commit(func(c *holdfast.Commit) { c.Put = put("k", "a", "b") })
	expect(t, "value", must(s.Value(t.Context(), th.key, "k", "a"))(t), []byte("data of a"))

	th.commit(func(c *holdfast.Commit) { c.Put = []holdfast.Value{{Kind: "k", ID: "a", Data: []byte("other")}} })
	expect(t, "value", must(s.Value(t.Context(), th.key, "k", "a"))(t), []byte("other"))

	th.commit(nil)
	th.commit(func(c *holdfast.Commit) {
		c.Delete = []holdfast.ValueID{{Kind: "k", ID: "a"}, {Kind: "k", ID: "never there"}, {Kind: "never", ID: "a"}}
	})
	th.wantNoValue("k", "a")
	th.wantValues("k", "b")
}

func testKinds(t *testing.T, s holdfast.Store) {
	// If kind and id were only joined, all of these would be the same.
	th := create(t, s, key("t"), func(c *holdfast.Commit) {
		c.Put = append(append(append(put("ab", "c"), put("a", "bc")...), put("abc", "")...), put("", "abc")...)
	})
	th.wantValues("ab", "c")
	th.wantValues("a", "bc")
	th.wantValues("abc", "")
	th.wantValues("", "abc")
	th.commit(func(c *holdfast.Commit) { c.Clear = []holdfast.Kind{"a"} })
	th.wantValues("ab", "c")
	th.wantValues("a")
	th.commit(func(c *holdfast.Commit) { c.Clear = []holdfast.Kind{""} })
	th.wantValues("")
	th.wantValues("abc", "")
}

func testNewest(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Put = put("k", "b", "d", "a", "c") })
	th.commit(func(c *holdfast.Commit) { c.Put = append(put("k", "ca", "\xff", "B"), put("l", "cb")...) })
	th.wantList("k", "", 0, "\xff", "d", "ca", "c", "b", "a", "B")
	th.wantList("k", "", 3, "\xff", "d", "ca")
	th.wantList("k", "ca", 2, "c", "b")
	th.wantList("k", "cb", 2, "ca", "c")
	th.wantList("k", "\xff\xff", 1, "\xff")
	th.wantList("k", "B", 10)
	th.wantList("k", "A", 0)
	th.wantList("unknown", "", 0)
}

func testOrder(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Put = append(put("k", "old"), put("l", "other")...) })
	th.commit(func(c *holdfast.Commit) {
		c.Clear = []holdfast.Kind{"k"}
		c.Put = put("k", "new", "brief")
		c.Delete = []holdfast.ValueID{{Kind: "k", ID: "brief"}}
	})
	th.wantValues("k", "new")
	th.wantValues("l", "other")
	th.commit(func(c *holdfast.Commit) { c.Put = append(put("k", "twice"), put("k", "twice")...) })
	th.wantValues("k", "twice", "new")
}

func testKeep(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Put = append(put("k", "1", "2", "3", "4"), put("l", "1", "2")...) })
	th.commit(func(c *holdfast.Commit) {
		c.Put = put("k", "5", "0")
		c.Delete = []holdfast.ValueID{{Kind: "k", ID: "4"}}
		c.Keep = map[holdfast.Kind]int{"k": 3, "unknown": 1}
	})
	th.wantValues("k", "5", "3", "2")
	th.wantValues("l", "2", "1")
	th.commit(func(c *holdfast.Commit) { c.Keep = map[holdfast.Kind]int{"k": 100, "l": 1} })
	th.wantValues("k", "5", "3", "2")
	th.wantValues("l", "2")
	th.commit(func(c *holdfast.Commit) { c.Keep = map[holdfast.Kind]int{"k": 0} })
	th.wantValues("k")
}

func testManyValues(t *testing.T, s holdfast.Store) {
	const count = 1000
	th := create(t, s, key("t"), nil)
	var want []string // newest first
	for i := range count {
		want = append(want, fmt.Sprintf("%06d", count-i))
	}
	for i := range 10 {
		th.commit(func(c *holdfast.Commit) {
			for n := i; n < count; n += 10 {
				c.Put = append(c.Put, put("k", want[n])...)
			}
		})
	}
	var got []string
	for before := ""; len(got) < count; before = got[len(got)-1] {
		page := must(s.Values(t.Context(), th.key, "k", before, 7))(t)
		if len(page) == 0 {
			break
		}
		for _, v := range page {
			got = append(got, v.ID)
		}
	}
	expect(t, "values, 7 at a time", got, want)
	th.commit(func(c *holdfast.Commit) { c.Keep = map[holdfast.Kind]int{"k": 3} })
	th.wantValues("k", want[:3]...)
}

func testEmptyValue(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) {
		c.Put = []holdfast.Value{{Kind: "k", ID: "nil"}, {Kind: "k", ID: "empty", Data: []byte{}}}
	})
	for _, id := range []string{"nil", "empty"} {
		expect(t, id, len(must(s.Value(t.Context(), th.key, "k", id))(t)), 0)
	}
}

func testLargeValues(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	for _, size := range append(sizes(), 5<<20) {
		for name, data := range map[string][]byte{"noise": noise(size), "prose": prose(size)} {
			id := fmt.Sprint(name, size)
			th.commit(func(c *holdfast.Commit) {
				c.State, c.Put = data, []holdfast.Value{{Kind: "k", ID: id, Data: data}, {Kind: "k", ID: id + "\x00\x00\x00\x00", Data: []byte("neighbour")}}
			})
			if got := must(s.Value(t.Context(), th.key, "k", id))(t); !bytes.Equal(got, data) {
				t.Errorf("value %s is not what was put", id)
			}
			if got := must(s.Value(t.Context(), th.key, "k", id+"\x00\x00\x00\x00"))(t); string(got) != "neighbour" {
				t.Errorf("the neighbour of value %s is not what was put", id)
			}
			th.check()
		}
	}
}

func testReplaceLarge(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	for i, size := range []int{100_000, 10, 50_000, 100_000, 0, 20_000, 2000} {
		data := noise(size)
		th.commit(func(c *holdfast.Commit) {
			c.State, c.Put = data, []holdfast.Value{{Kind: "k", ID: "v", Data: data}}
			if i == 3 {
				c.Clear = []holdfast.Kind{"k"}
			}
		})
		if got := must(s.Value(t.Context(), th.key, "k", "v"))(t); !bytes.Equal(got, data) {
			t.Errorf("after replacing: %d bytes, want %d", len(got), len(data))
		}
		th.check()
	}
	th.commit(func(c *holdfast.Commit) { c.Delete = []holdfast.ValueID{{Kind: "k", ID: "v"}} })
	th.wantNoValue("k", "v")
}

func inboxTests() map[string]func(*testing.T, holdfast.Store) {
	return map[string]func(*testing.T, holdfast.Store){
		"items are numbered as they come": testInboxNumbers,
		"an item is added once":           testInboxOnce,
		"a seen item is gone":             testInboxSeen,
		"a post does not move the head":   testInboxUnfenced,
	}
}

func (th *thread) post(id, data string) {
	th.t.Helper()
	// The number is the store's to give: what the caller sets does not matter.
	if err := th.s.Post(th.t.Context(), th.key, holdfast.InboxItem{ID: id, Number: 99, Data: []byte(data)}); err != nil {
		th.t.Fatalf("Post(%s): %v", id, err)
	}
}

// wantInbox compares the inbox with items given as "number id data".
func (th *thread) wantInbox(want ...string) {
	th.t.Helper()
	var got []string
	for _, it := range must(th.s.Inbox(th.t.Context(), th.key))(th.t) {
		got = append(got, fmt.Sprintf("%d %s %s", it.Number, it.ID, it.Data))
	}
	expect(th.t, "inbox", strings.Join(got, ", "), strings.Join(want, ", "))
}

func testInboxNumbers(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	th.wantInbox()
	th.post("z", "first")
	th.post("a", "second")
	th.wantInbox("1 z first", "2 a second")
	other := create(t, s, key("u"), nil)
	other.post("z", "its own")
	other.wantInbox("1 z its own")
	th.wantInbox("1 z first", "2 a second")
}

func testInboxOnce(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	th.post("a", "first")
	th.post("b", "x")
	th.post("a", "again")
	th.wantInbox("1 a first", "2 b x")
	th.post("c", "y")
	th.wantInbox("1 a first", "2 b x", "3 c y")
}

func testInboxSeen(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	seen := func(n uint64) { th.commit(func(c *holdfast.Commit) { c.InboxSeen = n }) }
	th.post("a", "")
	th.post("b", "")
	th.post("c", "")
	seen(0)
	th.wantInbox("1 a ", "2 b ", "3 c ")
	seen(2)
	th.wantInbox("3 c ")
	seen(1)
	th.wantInbox("3 c ")
	th.post("a", "a new one, since the first was consumed")
	th.wantInbox("3 c ", "4 a a new one, since the first was consumed")
	seen(100)
	th.wantInbox()
	th.post("d", "")
	th.wantInbox("5 d ")
}

func testInboxUnfenced(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.State = []byte("state") })
	th.post("a", strings.Repeat("large ", 10_000))
	th.check()
	th.commit(nil)
	th.check()
	expect(t, "inbox items after a commit", len(must(s.Inbox(t.Context(), th.key))(t)), 1)
}
