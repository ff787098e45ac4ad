package storetest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-agents/holdfast/store"
)

// The names that random commands use: few, so that commands meet, and easily confused.

func tenants() []string     { return []string{"a", "a/b"} }
func threadNames() []string { return []string{"t", "b/t", "t\x00"} }
func users() []string       { return []string{"", "u", "v"} }

func threadKeys() []store.ThreadKey {
	var keys []store.ThreadKey
	for _, tenant := range tenants() {
		for _, name := range threadNames() {
			keys = append(keys, store.ThreadKey{Tenant: tenant, Thread: name})
		}
	}
	return keys
}

func kinds() []store.Kind { return []store.Kind{"k", "k\x00", "l"} }

func fences() []store.Fence {
	return []store.Fence{{}, {Epoch: 1, Nonce: "abcdefgh"}, {Epoch: 1, Nonce: "abcdefgi"}, {Epoch: 2, Nonce: "x"}}
}

func drawTenant(r *rapid.T) string   { return rapid.SampledFrom(tenants()).Draw(r, "tenant") }
func drawUser(r *rapid.T) string     { return rapid.SampledFrom(users()).Draw(r, "user") }
func drawKind(r *rapid.T) store.Kind { return rapid.SampledFrom(kinds()).Draw(r, "kind") }

func drawKey(r *rapid.T) store.ThreadKey {
	return store.ThreadKey{Tenant: drawTenant(r), Thread: rapid.SampledFrom(threadNames()).Draw(r, "thread")}
}

func drawID(r *rapid.T) string {
	return rapid.SampledFrom([]string{"", "1", "2", "3", "3\x00\x00\x00\x00", "\xff"}).Draw(r, "id")
}

func drawTime(r *rapid.T) time.Time {
	return rapid.SampledFrom([]time.Time{
		{},
		start(),
		start().Add(1),
		start().Add(time.Second),
		start().Add(time.Minute),
		start().Add(-time.Hour),
		time.Unix(-1, 0),
	}).Draw(r, "time")
}

func drawData(r *rapid.T) []byte {
	size := rapid.SampledFrom([]int{0, 1, 10, 1500, 5000, 40_000}).Draw(r, "size")
	if rapid.Bool().Draw(r, "noise") {
		return noise(size)
	}
	return prose(size)
}

// drawCommit draws a commit that mostly follows the head of its thread.
func drawCommit(r *rapid.T, p *pair) *store.Commit {
	c := &store.Commit{
		Key:       drawKey(r),
		ID:        rapid.StringMatching(`[a-f]{0,8}`).Draw(r, "id"),
		User:      drawUser(r),
		Fence:     rapid.SampledFrom(fences()).Draw(r, "fence"),
		Process:   rapid.SampledFrom([]string{"", "p", "q"}).Draw(r, "process"),
		UpdatedAt: drawTime(r),
		InboxSeen: rapid.Uint64Range(0, 4).Draw(r, "seen"),
	}
	c.Expect = drawPosition(r, p, c.Key)
	if rapid.Bool().Draw(r, "state?") {
		c.State = drawData(r)
	}
	for range rapid.IntRange(0, 3).Draw(r, "records") {
		c.Records = append(c.Records, drawData(r))
	}
	if ends := p.ends[c.Key]; len(ends) > 0 && rapid.IntRange(0, 3).Draw(r, "trim?") == 0 {
		if end := rapid.SampledFrom(ends).Draw(r, "trim"); end < c.Expect.Next {
			c.Trim = end
		}
	}
	if c.Expect == (store.Position{Next: 1}) && rapid.Bool().Draw(r, "parent?") {
		if parent := rapid.SampledFrom(threadNames()).Draw(r, "parent"); parent != c.Key.Thread {
			c.Parent = parent
		}
	}
	drawMessages(r, c)
	drawValues(r, c)
	drawListings(r, c)
	return c
}

func drawPosition(r *rapid.T, p *pair, k store.ThreadKey) store.Position {
	pos := store.Position{Next: 1}
	if head, err := p.reference.Head(p.test.Context(), k); err == nil {
		pos = head.Position()
	}
	switch rapid.IntRange(0, 15).Draw(r, "position") {
	case 0:
		return store.Position{Next: 1}
	case 1:
		pos.Fence = rapid.SampledFrom(fences()).Draw(r, "expected fence")
	case 2:
		pos.ETag = "other"
	case 3:
		pos.Next++
	}
	return pos
}

func lists() []store.List {
	return []store.List{{Name: store.ListDue}, {Name: "n", Tenant: "a"}, {Name: "n", Group: "a"},
		{Name: store.ListTenantRunning, Tenant: "a"}}
}

// drawListings says in which lists the thread is; mostly it leaves those that it is in.
func drawListings(r *rapid.T, c *store.Commit) {
	if rapid.IntRange(0, 2).Draw(r, "listings?") > 0 {
		return
	}
	c.Listings = []store.Listing{}
	for _, l := range lists() {
		if rapid.Bool().Draw(r, "listed?") {
			c.Listings = append(c.Listings, store.Listing{List: l, At: drawTime(r)})
		}
	}
}

// drawMessages adds messages, some of them with ids that are taken or with parents that
// do not exist.
func drawMessages(r *rapid.T, c *store.Commit) {
	id := rapid.StringMatching(`[a-e]{1,2}`)
	parents := []string{""}
	if rapid.IntRange(0, 7).Draw(r, "parent?") == 0 {
		parents = append(parents, id.Draw(r, "parent"))
	}
	if rapid.IntRange(0, 7).Draw(r, "forget?") == 0 {
		c.Forget = []string{id.Draw(r, "forget"), id.Draw(r, "forget")}
	}
	for range rapid.IntRange(0, 2).Draw(r, "messages") {
		m := store.Message{
			ID:     id.Draw(r, "message"),
			Parent: rapid.SampledFrom(parents).Draw(r, "parent"),
			Data:   drawData(r),
		}
		c.Messages = append(c.Messages, m)
		parents = append(parents, m.ID)
	}
}

func drawValues(r *rapid.T, c *store.Commit) {
	for range rapid.IntRange(0, 3).Draw(r, "put") {
		c.Put = append(c.Put, store.Value{Kind: drawKind(r), ID: drawID(r), Data: drawData(r)})
	}
	for range rapid.IntRange(0, 1).Draw(r, "delete") {
		c.Delete = append(c.Delete, store.ValueID{Kind: drawKind(r), ID: drawID(r)})
	}
	if rapid.IntRange(0, 7).Draw(r, "clear") == 0 {
		c.Clear = append(c.Clear, drawKind(r))
	}
	if rapid.IntRange(0, 3).Draw(r, "keep?") == 0 {
		c.Keep = map[store.Kind]int{drawKind(r): rapid.IntRange(0, 3).Draw(r, "keep")}
	}
}
