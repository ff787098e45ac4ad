package storetest

import (
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

func testDoubleMessage(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.Messages = []store.Message{{ID: "m"}} })
	for _, messages := range [][]store.Message{
		{{ID: "m"}}, {{ID: "m", Parent: "m"}}, {{ID: "n"}, {ID: "n"}}, {{ID: "n"}, {ID: "m"}},
	} {
		c := th.next()
		c.Messages = messages
		wantError(t, s.Commit(t.Context(), c), store.ErrInvalid)
	}
	// In another thread, the same id is another message.
	create(t, s, key("u"), func(c *store.Commit) { c.Messages = []store.Message{{ID: "m"}} })
	expect(t, "messages", len(must(s.Messages(t.Context(), th.key))(t)), 1)
}

func testOrphan(t *testing.T, s store.Store) {
	create(t, s, key("u"), func(c *store.Commit) { c.Messages = []store.Message{{ID: "elsewhere"}} })
	th := create(t, s, key("t"), func(c *store.Commit) { c.Messages = []store.Message{{ID: "m"}} })
	for _, messages := range [][]store.Message{
		{{ID: "n", Parent: "unknown"}},
		{{ID: "n", Parent: "n"}},
		{{ID: "n", Parent: "elsewhere"}},
		{{ID: "child", Parent: "later"}, {ID: "later", Parent: "m"}},
	} {
		c := th.next()
		c.Messages = messages
		wantError(t, s.Commit(t.Context(), c), store.ErrInvalid)
	}
	expect(t, "messages", len(must(s.Messages(t.Context(), th.key))(t)), 1)
}

func testForget(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) {
		c.Messages = []store.Message{{ID: "a"}, {ID: "b", Parent: "a", Data: noise(40_000)}, {ID: "c", Parent: "b"}}
	})
	th.commit(func(c *store.Commit) {
		c.Forget = []string{"c", "b", "no such"}
		c.Messages = []store.Message{{ID: "d", Parent: "a", Data: []byte("d")}}
	})
	expect(t, "messages", must(s.Messages(t.Context(), th.key))(t),
		[]store.Message{{ID: "a"}, {ID: "d", Parent: "a", Data: []byte("d")}})
	orphan := th.next()
	orphan.Messages = []store.Message{{ID: "e", Parent: "c"}}
	wantError(t, s.Commit(t.Context(), orphan), store.ErrInvalid)
	th.commit(func(c *store.Commit) {
		c.Messages = []store.Message{{ID: "b", Parent: "d", Data: []byte("again")}}
	})
	expect(t, "messages", must(s.Messages(t.Context(), th.key))(t), []store.Message{
		{ID: "a"}, {ID: "d", Parent: "a", Data: []byte("d")}, {ID: "b", Parent: "d", Data: []byte("again")},
	})
}
