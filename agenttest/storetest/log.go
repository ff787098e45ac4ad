package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

func recordTests() map[string]func(*testing.T, holdfast.Store) {
	return map[string]func(*testing.T, holdfast.Store){
		"numbers are dense over commits": testDense,
		"a cursor gives the rest":        testCursor,
		"a wrong cursor":                 testWrongCursor,
		"short nonces are whole tags":    testShortNonce,
		"large records":                  testLargeRecords,
	}
}

func testDense(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	expect(t, "records of a new thread", len(must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 10))(t)), 0)
	var want []holdfast.Record
	for n := range 30 {
		th.commit(func(c *holdfast.Commit) {
			if n%7 == 0 {
				c.Fence = fence(uint64(n))
			}
			for range n % 4 {
				data := fmt.Appendf(nil, "record %d", len(want)+1)
				c.Records = append(c.Records, data)
				want = append(want, holdfast.Record{Cursor: holdfast.Cursor{Number: uint64(len(want) + 1), Tag: c.Fence.Tag()}, Data: data})
			}
		})
	}
	expect(t, "records", must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 1000))(t), want)
	th.check()
}

func testCursor(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) {
		for n := range 20 {
			c.Records = append(c.Records, fmt.Append(nil, n))
		}
	})
	all := must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 20))(t)
	for n := range all {
		for _, limit := range []int{1, 5, 100} {
			got := must(s.Records(t.Context(), th.key, all[n].Cursor, limit))(t)
			rest := all[n+1:]
			expect(t, fmt.Sprintf("%d records after %d", limit, n+1), got, rest[:min(limit, len(rest))])
		}
	}
	expect(t, "no records", len(must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 0))(t)), 0)
}

func testWrongCursor(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Records = [][]byte{[]byte("a"), []byte("b")} })
	tag := th.head.Fence.Tag()
	create(t, s, key("u"), func(c *holdfast.Commit) {
		c.Fence, c.Records = th.head.Fence, [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	})
	for _, c := range []holdfast.Cursor{
		{Number: 1, Tag: "wrong0"}, {Number: 2, Tag: tag[:5]}, {Number: 2, Tag: tag + "0"}, {Number: 1}, {Number: 0, Tag: tag},
		{Number: 3, Tag: tag}, {Number: 1 << 63, Tag: tag}, {Number: 1<<64 - 1, Tag: tag},
	} {
		if got, err := s.Records(t.Context(), th.key, c, 10); err == nil {
			t.Errorf("cursor %+v gave %q", c, got)
		} else {
			wantError(t, err, holdfast.ErrCursor)
		}
	}
	// The cursor is checked even if nothing is asked for.
	_, err := s.Records(t.Context(), th.key, holdfast.Cursor{Number: 9, Tag: tag}, 0)
	wantError(t, err, holdfast.ErrCursor)
}

func testShortNonce(t *testing.T, s holdfast.Store) {
	for _, nonce := range []string{"", "x", "abcdef", "abcdefg", "äöü€"} {
		th := create(t, s, key("t"+nonce), func(c *holdfast.Commit) {
			c.Fence = holdfast.Fence{Epoch: 1, Nonce: nonce}
			c.Records = [][]byte{[]byte("a"), []byte("b")}
		})
		cursor := holdfast.Cursor{Number: 1, Tag: th.head.Fence.Tag()}
		got := must(s.Records(t.Context(), th.key, cursor, 10))(t)
		expect(t, "records after "+cursor.String(), got, []holdfast.Record{{Cursor: holdfast.Cursor{Number: 2, Tag: cursor.Tag}, Data: []byte("b")}})
	}
}

func testLargeRecords(t *testing.T, s holdfast.Store) {
	var data [][]byte
	for _, size := range sizes() {
		data = append(data, noise(size), prose(size))
	}
	th := create(t, s, key("t"), nil)
	for _, d := range data {
		th.commit(func(c *holdfast.Commit) { c.Records = [][]byte{[]byte("small"), d} })
	}
	got := must(s.Records(t.Context(), th.key, holdfast.Cursor{}, 1000))(t)
	if len(got) != 2*len(data) {
		t.Fatalf("%d records, want %d", len(got), 2*len(data))
	}
	for i, d := range data {
		if string(got[2*i].Data) != "small" || string(got[2*i+1].Data) != string(d) {
			t.Errorf("records %d and %d are not what was committed (%d bytes)", 2*i, 2*i+1, len(d))
		}
	}
}

// sizes are around the places where stores may treat values differently.
func sizes() []int {
	return []int{0, 1, 1023, 1024, 1025, 2048, 3071, 3072, 3073, 4096, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100_000}
}

// noise does not compress, and is the same each time.
func noise(size int) []byte {
	b := make([]byte, size)
	x := uint64(size)*2862933555777941757 + 3037000493
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

func prose(size int) []byte {
	const s = "The quick brown fox jumps over the lazy dog. "
	return []byte(strings.Repeat(s, size/len(s)+1)[:size])
}

func messageTests() map[string]func(*testing.T, holdfast.Store) {
	return map[string]func(*testing.T, holdfast.Store){
		"a tree in the order of its commits": testTree,
		"ids are new in the thread":          testDoubleMessage,
		"parents are known":                  testOrphan,
		"large messages":                     testLargeMessages,
	}
}

func testTree(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	expect(t, "messages of a new thread", len(must(s.Messages(t.Context(), th.key))(t)), 0)
	steps := [][]holdfast.StoredMessage{
		{{ID: "z", Data: []byte("root")}, {ID: "a", Parent: "z", Data: []byte("child of the same commit")}},
		{{ID: "m", Parent: "a"}},
		nil,
		{{ID: "b", Parent: "z", Data: []byte("branch")}, {ID: "0", Parent: "b"}, {ID: "zz", Parent: "m"}},
		{{ID: "root2", Data: []byte("another first message")}},
	}
	var want []holdfast.StoredMessage
	for _, messages := range steps {
		th.commit(func(c *holdfast.Commit) { c.Messages = messages })
		want = append(want, messages...)
	}
	expect(t, "messages", must(s.Messages(t.Context(), th.key))(t), want)
}

func testDoubleMessage(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Messages = []holdfast.StoredMessage{{ID: "m"}} })
	for _, messages := range [][]holdfast.StoredMessage{
		{{ID: "m"}}, {{ID: "m", Parent: "m"}}, {{ID: "n"}, {ID: "n"}}, {{ID: "n"}, {ID: "m"}},
	} {
		c := th.next()
		c.Messages = messages
		wantError(t, s.Commit(t.Context(), c), holdfast.ErrInvalid)
	}
	// The same id in another thread is another message.
	create(t, s, key("u"), func(c *holdfast.Commit) { c.Messages = []holdfast.StoredMessage{{ID: "m"}} })
	expect(t, "messages", len(must(s.Messages(t.Context(), th.key))(t)), 1)
}

func testOrphan(t *testing.T, s holdfast.Store) {
	create(t, s, key("u"), func(c *holdfast.Commit) { c.Messages = []holdfast.StoredMessage{{ID: "elsewhere"}} })
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Messages = []holdfast.StoredMessage{{ID: "m"}} })
	for _, messages := range [][]holdfast.StoredMessage{
		{{ID: "n", Parent: "unknown"}},
		{{ID: "n", Parent: "n"}},
		{{ID: "n", Parent: "elsewhere"}},
		{{ID: "child", Parent: "later"}, {ID: "later", Parent: "m"}},
	} {
		c := th.next()
		c.Messages = messages
		wantError(t, s.Commit(t.Context(), c), holdfast.ErrInvalid)
	}
	expect(t, "messages", len(must(s.Messages(t.Context(), th.key))(t)), 1)
}

func testLargeMessages(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), nil)
	var want []holdfast.StoredMessage
	for _, size := range sizes() {
		th.commit(func(c *holdfast.Commit) {
			c.Messages = []holdfast.StoredMessage{{ID: fmt.Sprint("n", size), Data: noise(size)}, {ID: fmt.Sprint("p", size), Data: prose(size)}}
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
	}
}
