package storetest

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

func testInboxNumbers(t *testing.T, s store.Store) {
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

func testInboxOnce(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	th.post("a", "first")
	th.post("b", "x")
	th.post("a", "again")
	th.wantInbox("1 a first", "2 b x")
	th.post("c", "y")
	th.wantInbox("1 a first", "2 b x", "3 c y")
}

func testInboxSeen(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	seen := func(n uint64) { th.commit(func(c *store.Commit) { c.InboxSeen = n }) }
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

func testInboxUnfenced(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), func(c *store.Commit) { c.State = []byte("state") })
	th.post("a", strings.Repeat("large ", 10_000))
	th.check()
	th.commit(nil)
	th.check()
	expect(t, "inbox items after a commit", len(must(s.Inbox(t.Context(), th.key))(t)), 1)
}
