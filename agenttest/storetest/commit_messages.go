package storetest

import (
	"testing"

	"github.com/holdfast-agents/holdfast"
)

func testDoubleMessage(t *testing.T, s holdfast.Store) {
	th := create(t, s, key("t"), func(c *holdfast.Commit) { c.Messages = []holdfast.StoredMessage{{ID: "m"}} })
	for _, messages := range [][]holdfast.StoredMessage{
		{{ID: "m"}}, {{ID: "m", Parent: "m"}}, {{ID: "n"}, {ID: "n"}}, {{ID: "n"}, {ID: "m"}},
	} {
		c := th.next()
		c.Messages = messages
		wantError(t, s.Commit(t.Context(), c), holdfast.ErrInvalid)
	}
	// In another thread, the same id is another message.
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
