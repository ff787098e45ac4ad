package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// The tools of all tests: a thread that remembers where it stands, keys and times.

// start is the time that all tests count from. It has nanoseconds, and is not the
// beginning of a second, minute or hour.
func start() time.Time { return time.Date(2026, 3, 1, 12, 34, 56, 789012345, time.UTC) }

func key(thread string) store.ThreadKey {
	return store.ThreadKey{Tenant: "acme", Thread: thread}
}

func alice() holdfast.Principal { return holdfast.Principal{Tenant: "acme", User: "alice"} }

// fence returns a fence with a new nonce.
func fence(epoch uint64) store.Fence {
	return store.Fence{Epoch: epoch, Nonce: fmt.Sprintf("%016x", rand.Uint64())}
}

func newID() string { return fmt.Sprintf("c-%016x", rand.Uint64()) }

// thread commits to one thread and remembers where it stands.
type thread struct {
	t    *testing.T
	s    store.Store
	key  store.ThreadKey
	head store.Head // as the last commit must have left it
}

// create makes a thread of alice's with one commit, which change may add to.
func create(t *testing.T, s store.Store, k store.ThreadKey, change func(c *store.Commit)) *thread {
	t.Helper()
	th := &thread{t: t, s: s, key: k, head: store.Head{Key: k, User: "alice", Next: 1}}
	th.commit(func(c *store.Commit) {
		c.Fence = fence(1)
		if change != nil {
			change(c)
		}
	})
	return th
}

// next returns a commit that follows the head and changes nothing else.
func (th *thread) next() *store.Commit {
	return &store.Commit{
		Key:       th.key,
		ID:        newID(),
		Expect:    th.head.Position(),
		User:      th.head.User,
		Fence:     th.head.Fence,
		Process:   th.head.Process,
		UpdatedAt: start(),
	}
}

// commit makes a commit that follows the head and must succeed.
func (th *thread) commit(change func(c *store.Commit)) *store.Commit {
	th.t.Helper()
	c := th.next()
	if change != nil {
		change(c)
	}
	if err := th.s.Commit(th.t.Context(), c); err != nil {
		th.t.Fatalf("Commit(%s): %v", c.ID, err)
	}
	th.head = headAfter(th.head, c)
	return c
}

// headAfter returns the head after a commit that follows h.
func headAfter(h store.Head, c *store.Commit) store.Head {
	after := store.Head{
		Key:       c.Key,
		User:      c.User,
		Fence:     c.Fence,
		Process:   c.Process,
		ETag:      c.ID,
		Next:      h.Next + uint64(len(c.Records)),
		UpdatedAt: c.UpdatedAt,
		State:     h.State,
	}
	if c.State != nil {
		after.State = c.State
	}
	return after
}

// check compares the stored head with the expected one.
func (th *thread) check() {
	th.t.Helper()
	got := must(th.s.Head(th.t.Context(), th.key))(th.t)
	sameHead(th.t, *got, th.head)
}

func sameHead(t *testing.T, got, want store.Head) {
	t.Helper()
	if text(got) != text(want) || !bytes.Equal(got.State, want.State) {
		t.Errorf("head is\n\t%s, want\n\t%s", text(got), text(want))
	}
}

// text returns a head as a text, the same for equal heads: it does not depend on how a
// time is represented in memory.
func text(h store.Head) string {
	return fmt.Sprintf("%q %q fence %d %q process %q etag %q next %d at %s, %d bytes of state", h.Key, h.User,
		h.Fence.Epoch, h.Fence.Nonce, h.Process, h.ETag, h.Next, h.UpdatedAt.UTC().Format(time.RFC3339Nano),
		len(h.State))
}

// post posts an item to the thread.
func (th *thread) post(id, data string) {
	th.t.Helper()
	// The store assigns the number; what the caller sets does not matter.
	if err := th.s.Post(th.t.Context(), th.key, store.InboxItem{ID: id, Number: 99, Data: []byte(data)}); err != nil {
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
