package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// The Reader role: records after a cursor, the tree of messages, values in pages, sizes. The
// caller gets a copy.

// readTests test [store.Reader].
func readTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"an unknown thread is not found":         testUnknownThread,
		"numbers are dense over commits":         testDense,
		"a cursor gives the rest":                testCursor,
		"a wrong cursor":                         testWrongCursor,
		"short nonces are whole tags":            testShortNonce,
		"large records":                          testLargeRecords,
		"a tree in the order of its commits":     testTree,
		"large messages":                         testLargeMessages,
		"newest first, before and limit":         testNewest,
		"pages of many values":                   testManyValues,
		"an empty value is not a missing one":    testEmptyValue,
		"large values":                           testLargeValues,
		"the size covers everything":             testSize,
		"what is returned belongs to the caller": testReturned,
	}
}

func testDense(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	expect(t, "records of a new thread", len(must(s.Records(t.Context(), th.key, store.Cursor{}, 10))(t)), 0)
	var want []store.Record
	for n := range 30 {
		th.commit(func(c *store.Commit) {
			if n%7 == 0 {
				c.Fence = fence(uint64(n))
			}
			for range n % 4 {
				data := fmt.Appendf(nil, "record %d", len(want)+1)
				c.Records = append(c.Records, data)
				want = append(want, store.Record{Cursor: store.Cursor{Number: uint64(len(want) + 1),
					Tag: c.Fence.Tag()}, Data: data})
			}
		})
	}
	expect(t, "records", must(s.Records(t.Context(), th.key, store.Cursor{}, 1000))(t), want)
	th.check()
}

func testCursor(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) {
		for n := range 20 {
			c.Records = append(c.Records, fmt.Append(nil, n))
		}
	})
	all := must(s.Records(t.Context(), th.key, store.Cursor{}, 20))(t)
	for n := range all {
		for _, limit := range []int{1, 5, 100} {
			got := must(s.Records(t.Context(), th.key, all[n].Cursor, limit))(t)
			rest := all[n+1:]
			expect(t, fmt.Sprintf("%d records after %d", limit, n+1), got, rest[:min(limit, len(rest))])
		}
	}
	expect(t, "no records", len(must(s.Records(t.Context(), th.key, store.Cursor{}, 0))(t)), 0)
}

func testWrongCursor(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Records = [][]byte{[]byte("a"), []byte("b")} })
	tag := th.head.Fence.Tag()
	create(t, s, key("u"), func(c *store.Commit) {
		c.Fence, c.Records = th.head.Fence, [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	})
	for _, c := range []store.Cursor{
		{Number: 1, Tag: "wrong0"}, {Number: 2, Tag: tag[:5]}, {Number: 2, Tag: tag + "0"}, {Number: 1},
		{Number: 0, Tag: tag},
		{Number: 3, Tag: tag}, {Number: 1 << 63, Tag: tag}, {Number: 1<<64 - 1, Tag: tag},
	} {
		if got, err := s.Records(t.Context(), th.key, c, 10); err == nil {
			t.Errorf("cursor %+v gave %q", c, got)
		} else {
			wantError(t, err, store.ErrCursor)
		}
	}
	// The cursor is checked even if no record is asked for.
	_, err := s.Records(t.Context(), th.key, store.Cursor{Number: 9, Tag: tag}, 0)
	wantError(t, err, store.ErrCursor)
}

func testShortNonce(t *testing.T, s store.Store) {
	for _, nonce := range []string{"", "x", "abcdef", "abcdefg", "äöü€"} {
		th := create(t, s, key("t"+nonce), func(c *store.Commit) {
			c.Fence = store.Fence{Epoch: 1, Nonce: nonce}
			c.Records = [][]byte{[]byte("a"), []byte("b")}
		})
		cursor := store.Cursor{Number: 1, Tag: th.head.Fence.Tag()}
		got := must(s.Records(t.Context(), th.key, cursor, 10))(t)
		expect(t, "records after "+cursor.String(), got,
			[]store.Record{{Cursor: store.Cursor{Number: 2, Tag: cursor.Tag}, Data: []byte("b")}})
	}
}

func testLargeRecords(t *testing.T, s store.Store) {
	var data [][]byte
	for _, size := range sizes() {
		data = append(data, noise(size), prose(size))
	}
	th := create(t, s, key("t"), nil)
	for _, d := range data {
		th.commit(func(c *store.Commit) { c.Records = [][]byte{[]byte("small"), d} })
	}
	got := must(s.Records(t.Context(), th.key, store.Cursor{}, 1000))(t)
	if len(got) != 2*len(data) {
		t.Fatalf("%d records, want %d", len(got), 2*len(data))
	}
	for i, d := range data {
		if string(got[2*i].Data) != "small" || string(got[2*i+1].Data) != string(d) {
			t.Errorf("records %d and %d are not what was committed (%d bytes)", 2*i, 2*i+1, len(d))
		}
	}
}

func testTree(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	expect(t, "messages of a new thread", len(must(s.Messages(t.Context(), th.key))(t)), 0)
	steps := [][]store.Message{
		{{ID: "z", Data: []byte("root")}, {ID: "a", Parent: "z", Data: []byte("child of the same commit")}},
		{{ID: "m", Parent: "a"}},
		nil,
		{{ID: "b", Parent: "z", Data: []byte("branch")}, {ID: "0", Parent: "b"}, {ID: "zz", Parent: "m"}},
		{{ID: "root2", Data: []byte("another first message")}},
	}
	var want []store.Message
	for _, messages := range steps {
		th.commit(func(c *store.Commit) { c.Messages = messages })
		want = append(want, messages...)
	}
	expect(t, "messages", must(s.Messages(t.Context(), th.key))(t), want)
	some := []store.Message{want[5], want[0], want[3]}
	expect(t, "some messages, in the order of the ids",
		must(s.MessagesOf(t.Context(), th.key, []string{want[5].ID, want[0].ID, want[3].ID}))(t), some)
	expect(t, "no messages", len(must(s.MessagesOf(t.Context(), th.key, nil))(t)), 0)
	_, err := s.MessagesOf(t.Context(), th.key, []string{want[0].ID, "nobody"})
	wantError(t, err, store.ErrNotFound)
	th.commit(func(c *store.Commit) { c.Forget = []string{want[3].ID} })
	_, err = s.MessagesOf(t.Context(), th.key, []string{want[3].ID})
	wantError(t, err, store.ErrNotFound)
}

func testLargeMessages(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	var want []store.Message
	for _, size := range sizes() {
		th.commit(func(c *store.Commit) {
			c.Messages = []store.Message{
				{ID: fmt.Sprint("n", size), Data: noise(size)},
				{ID: fmt.Sprint("p", size), Data: prose(size)},
			}
			want = append(want, c.Messages...)
		})
	}
	got := must(s.Messages(t.Context(), th.key))(t)
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].ID != want[i].ID || string(got[i].Data) != string(want[i].Data) {
			t.Errorf("message %s is not what was committed", want[i].ID)
		}
		one := must(s.MessagesOf(t.Context(), th.key, []string{want[i].ID}))(t)
		if len(one) != 1 || string(one[0].Data) != string(want[i].Data) {
			t.Errorf("message %s, read alone, is not what was committed", want[i].ID)
		}
	}
}

func testNewest(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Put = put("k", "b", "d", "a", "c") })
	th.commit(func(c *store.Commit) { c.Put = append(put("k", "ca", "\xff", "B"), put("l", "cb")...) })
	th.wantList("k", "", 0, "\xff", "d", "ca", "c", "b", "a", "B")
	th.wantList("k", "", 3, "\xff", "d", "ca")
	th.wantList("k", "ca", 2, "c", "b")
	th.wantList("k", "cb", 2, "ca", "c")
	th.wantList("k", "\xff\xff", 1, "\xff")
	th.wantList("k", "B", 10)
	th.wantList("k", "A", 0)
	th.wantList("unknown", "", 0)
	var some []string
	for _, v := range must(s.ValuesOf(t.Context(), th.key, "k", []string{"ca", "nobody", "\xff", "cb", "a"}))(t) {
		some = append(some, v.ID)
		expect(t, v.ID, v, must(s.Values(t.Context(), th.key, "k", v.ID+"\x00", 1))(t)[0])
	}
	expect(t, "values by their ids", some, []string{"ca", "\xff", "a"})
	expect(t, "no values", len(must(s.ValuesOf(t.Context(), th.key, "k", nil))(t)), 0)
	expect(t, "values of another kind", len(must(s.ValuesOf(t.Context(), th.key, "l", []string{"a"}))(t)), 0)
}

func testManyValues(t *testing.T, s store.Store) {
	const count = 1000
	th := create(t, s, key("t"), nil)
	var want []string // newest first
	for i := range count {
		want = append(want, fmt.Sprintf("%06d", count-i))
	}
	for i := range 10 {
		th.commit(func(c *store.Commit) {
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
	th.commit(func(c *store.Commit) { c.Keep = map[store.Kind]int{"k": 3} })
	th.wantValues("k", want[:3]...)
}

func testEmptyValue(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) {
		c.Put = []store.Value{{Kind: "k", ID: "nil"}, {Kind: "k", ID: "empty", Data: []byte{}}}
	})
	for _, id := range []string{"nil", "empty"} {
		expect(t, id, len(must(s.Value(t.Context(), th.key, "k", id))(t)), 0)
	}
}

func testLargeValues(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	for _, size := range append(sizes(), 5<<20) {
		for name, data := range map[string][]byte{"noise": noise(size), "prose": prose(size)} {
			id := fmt.Sprint(name, size)
			th.commit(func(c *store.Commit) {
				c.State, c.Put = data, []store.Value{
					{Kind: "k", ID: id, Data: data},
					{Kind: "k", ID: id + "\x00\x00\x00\x00", Data: []byte("neighbour")},
				}
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

func testSize(t *testing.T, s store.Store) {
	th := filled(t, s, key("t"))
	size := must(s.Size(t.Context(), th.key))(t)
	least := map[string]int64{store.SizeRecords: 10, store.SizeMessages: 40_000}
	for _, kind := range append(store.Kinds(), "foreign", "for/eign\x00") {
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
	th.commit(func(c *store.Commit) { c.Trim, c.Clear = 2, store.Kinds() })
	size = must(s.Size(t.Context(), th.key))(t)
	if len(size) != 3 || size[store.SizeRecords] != 0 {
		t.Errorf("after most was removed the size is %v", size)
	}
}

func testUnknownThread(t *testing.T, s store.Store) {
	ctx, k := t.Context(), key("unknown")
	_, err := s.Head(ctx, k)
	wantError(t, err, store.ErrNotFound)
	_, err = s.Messages(ctx, k)
	wantError(t, err, store.ErrNotFound)
	_, err = s.MessagesOf(ctx, k, []string{"m"})
	wantError(t, err, store.ErrNotFound)
	_, err = s.MessagesOf(ctx, k, nil)
	wantError(t, err, store.ErrNotFound)
	_, err = s.Records(ctx, k, store.Cursor{}, 1)
	wantError(t, err, store.ErrNotFound)
	_, err = s.Value(ctx, k, "k", "v")
	wantError(t, err, store.ErrNotFound)
	_, err = s.ValuesOf(ctx, k, "k", nil)
	wantError(t, err, store.ErrNotFound)
	_, err = s.Values(ctx, k, "k", "", 0)
	wantError(t, err, store.ErrNotFound)
	_, err = s.Inbox(ctx, k)
	wantError(t, err, store.ErrNotFound)
	wantError(t, s.Post(ctx, k, store.InboxItem{ID: "i"}), store.ErrNotFound)
}

func testReturned(t *testing.T, s store.Store) {
	for _, size := range []int{10, 2000, 100_000} {
		mark := string(prose(size))
		th := create(t, s, key(fmt.Sprint("t", size)), func(c *store.Commit) { fillWith(c, mark) })
		th.post("item", mark)
		for range 2 {
			th.holdsOnly(mark)
			value := must(s.Value(t.Context(), th.key, "k", "v"))(t)
			overwrite(value)
			head := must(s.Head(t.Context(), th.key))(t)
			overwrite(head.State)
			head.User, head.Next = "other", 7
			for _, r := range must(s.Records(t.Context(), th.key, store.Cursor{}, 10))(t) {
				overwrite(r.Data)
			}
			for _, m := range must(s.Messages(t.Context(), th.key))(t) {
				for _, one := range must(s.MessagesOf(t.Context(), th.key, []string{m.ID}))(t) {
					overwrite(one.Data)
				}
				overwrite(m.Data)
			}
			for _, v := range must(s.Values(t.Context(), th.key, "k", "", 0))(t) {
				overwrite(v.Data)
			}
			for _, it := range must(s.Inbox(t.Context(), th.key))(t) {
				overwrite(it.Data)
			}
		}
		th.holdsOnly(mark)
	}
}

// overwrite also writes beyond the end, where other data may be.
func overwrite(b []byte) {
	copy(b[:cap(b)], bytes.Repeat([]byte("!"), cap(b)))
}
