package storetest

import (
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

func testDelete(t *testing.T, s store.Store) {
	th, other := filled(t, s, key("t")), filled(t, s, key("t2"))
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	_, err := s.Head(t.Context(), th.key)
	wantError(t, err, store.ErrNotFound)
	_, err = s.Size(t.Context(), th.key)
	wantError(t, err, store.ErrNotFound)
	wantError(t, s.Post(t.Context(), th.key, store.InboxItem{ID: "j"}), store.ErrNotFound)
	wantThreads(t, s, alice(), start().AddDate(1, 0, 0), 10, "t2")
	for _, o := range must(s.Owned(t.Context()))(t) {
		if o.Key == th.key {
			t.Error("the deleted thread is still owned")
		}
	}
	other.check()
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Errorf("deleting again: %v, want nil", err)
	}
	// An owner that does not know yet cannot write anymore.
	wantError(t, s.Commit(t.Context(), th.next()), store.ErrFenced)
}

func testDeleteMoved(t *testing.T, s store.Store) {
	th := filled(t, s, key("t"))
	old := th.head.Position()
	th.commit(nil)
	wantError(t, s.Delete(t.Context(), th.key, old), store.ErrConflict)
	old.Fence = fence(7)
	wantError(t, s.Delete(t.Context(), th.key, old), store.ErrFenced)
	th.check()
}

func testDeleteAgain(t *testing.T, s store.Store) {
	th := filled(t, s, key("t"))
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	again := create(t, s, key("t"), func(c *store.Commit) { c.Records = [][]byte{[]byte("first")} })
	again.check()
	expect(t, "messages", must(s.Messages(t.Context(), again.key))(t), []store.Message{})
	expect(t, "inbox", must(s.Inbox(t.Context(), again.key))(t), []store.InboxItem{})
	for _, kind := range append(store.Kinds(), "foreign", "for/eign\x00") {
		expect(t, string(kind), must(s.Values(t.Context(), again.key, kind, "", 0))(t), []store.Value{})
	}
	records := must(s.Records(t.Context(), again.key, store.Cursor{}, 10))(t)
	expect(t, "records", records, []store.Record{{Cursor: store.Cursor{Number: 1, Tag: again.head.Fence.Tag()},
		Data: []byte("first")}})
}

func testTrim(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	var all []store.Record
	for n := range 6 {
		c := th.commit(func(c *store.Commit) {
			c.Records = [][]byte{fmt.Appendf(nil, "%d", n), noise(5000)}
		})
		for i, data := range c.Records {
			all = append(all, store.Record{Cursor: store.Cursor{Number: c.Expect.Next + uint64(i), Tag: c.Fence.Tag()},
				Data: data})
		}
	}
	th.commit(func(c *store.Commit) { c.Trim = 8; c.Records = [][]byte{[]byte("last")} })
	all = append(all, store.Record{Cursor: store.Cursor{Number: 13, Tag: th.head.Fence.Tag()}, Data: []byte("last")})
	th.check()
	expect(t, "records", must(s.Records(t.Context(), th.key, store.Cursor{}, 100))(t), all[8:])
	expect(t, "records after 9", must(s.Records(t.Context(), th.key, all[8].Cursor, 100))(t), all[9:])
	for _, gone := range []int{0, 6, 7} {
		_, err := s.Records(t.Context(), th.key, all[gone].Cursor, 100)
		wantError(t, err, store.ErrCursor)
	}
	th.commit(func(c *store.Commit) { c.Trim = 4 }) // already trimmed
	th.commit(func(c *store.Commit) { c.Trim = 13 })
	expect(t, "an empty log", must(s.Records(t.Context(), th.key, store.Cursor{}, 100))(t), []store.Record{})
	th.commit(func(c *store.Commit) { c.Records = [][]byte{[]byte("more")} })
	records := must(s.Records(t.Context(), th.key, store.Cursor{}, 100))(t)
	if len(records) != 1 || records[0].Number != 14 {
		t.Errorf("after everything was trimmed the log has %v, want record 14", records)
	}
}

func testTrimInvalid(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Records = [][]byte{[]byte("r")} })
	c := th.next()
	c.Trim = 2
	wantError(t, s.Commit(t.Context(), c), store.ErrInvalid)
	th.check()
}
