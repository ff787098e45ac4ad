package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// testReopen: after the store was closed and opened, it has everything that it had
// acknowledged, and continues as if nothing had happened.
func testReopen(t *testing.T, s store.Store, reopen func(t *testing.T, s store.Store) store.Store) {
	var threads []*thread
	before := map[string][]any{}
	for i := range 5 {
		th := create(t, s, key(fmt.Sprint("t", i)), func(c *store.Commit) {
			c.UpdatedAt = start().Add(time.Duration(i) * time.Hour)
		})
		th.commit(func(c *store.Commit) { fillWith(c, string(prose(i*i*i*1000))) })
		th.commit(func(c *store.Commit) {
			c.Process, c.UpdatedAt = fmt.Sprint("p", i), c.UpdatedAt.Add(time.Duration(i)*time.Hour)
		})
		th.post("seen", "")
		th.post("waiting", "")
		th.commit(func(c *store.Commit) { c.InboxSeen = 1 })
		threads = append(threads, th)
		before[th.key.Thread] = everything(t, s, th.key)
	}
	listed := must(s.Threads(t.Context(), alice(), time.Time{}, 100))(t)
	owned := must(s.Owned(t.Context()))(t)
	books := fillBooks(t, s)

	s = reopen(t, s)
	expect(t, "threads after reopening", heads(must(s.Threads(t.Context(), alice(), time.Time{}, 100))(t)),
		heads(listed))
	wantOwned(t, s, owned...)
	for _, th := range threads {
		th.s = s
		expect(t, "thread after reopening", everything(t, s, th.key), before[th.key.Thread])
		th.check()
		th.post("another", "")
		th.wantInbox("2 waiting ", "3 another ")
		stale := th.next()
		stale.Expect.Fence = fence(1)
		wantError(t, s.Commit(t.Context(), stale), store.ErrFenced)
		double := th.next()
		double.Messages = []store.Message{{ID: "m"}}
		wantError(t, s.Commit(t.Context(), double), store.ErrInvalid)
		th.commit(func(c *store.Commit) {
			c.Records, c.Messages = [][]byte{[]byte("on")}, []store.Message{{ID: "n", Parent: "m"}}
		})
		th.check()
	}
	create(t, s, key("a new one"), nil).check()
	books.s = s
	books.checkBooks()
}

// fillBooks makes reservations, one of which is settled.
func fillBooks(t *testing.T, s store.Store) *books {
	b := openBooks(t, s)
	b.reserve("expires", store.Entry{Account: "a", Amount: 1, Expires: b.in(time.Minute)})
	b.pass(30 * time.Second)
	b.reserve("held", store.Entry{Account: "a", Amount: 10},
		store.Entry{Account: "b", Amount: 10, Expires: b.in(time.Minute)})
	b.reserve("settled", store.Entry{Account: "b", Amount: 10},
		store.Entry{Account: "c", Amount: 1, Expires: b.in(time.Minute)})
	b.settle("settled", map[string]int64{"b": 5})
	b.used(11, 15, 0)
	return b
}

// checkBooks checks that the store knows everything that fillBooks did.
func (b *books) checkBooks() {
	b.t.Helper()
	b.used(11, 15, 0)
	b.reserve("held", store.Entry{Account: "a", Amount: 10})
	b.settle("settled", map[string]int64{"b": 7})
	b.refuse("new", store.LimitError{Account: "a", Used: 11, Amount: 5, Limit: 15},
		store.Entry{Account: "a", Amount: 5, Limit: 15})
	b.used(11, 15, 0)
	b.pass(time.Minute)
	b.settle("expires", nil)
	b.settle("held", nil)
	b.used(1, 5, 0)
}

// heads returns the heads as texts.
func heads(list []store.Head) []string {
	var shown []string
	for _, h := range list {
		shown = append(shown, text(h))
	}
	return shown
}
