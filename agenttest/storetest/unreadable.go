package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// unreadableTests test what a store does with a thread whose head cannot be read: it is listed
// and its owner can remove it, and no other thread notices.
func unreadableTests() map[string]func(*testing.T, store.Store, func(store.ThreadKey)) {
	return map[string]func(*testing.T, store.Store, func(store.ThreadKey)){
		"it is listed for its user":              testUnreadableThreads,
		"a walk finds it":                        testUnreadableWalk,
		"its head says whose it is":              testUnreadableHead,
		"it can be removed":                      testUnreadableDelete,
		"nobody makes another one under its key": testUnreadableTaken,
	}
}

// wantUnreadable checks that the error is one of a thread that cannot be read.
func wantUnreadable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrUnreadable) && !errors.Is(err, store.ErrVersionTooNew) {
		t.Errorf("error is %v, want ErrUnreadable or ErrVersionTooNew", err)
	}
}

// wantOnly checks that nothing of the head is known except key, user and time.
func wantOnly(t *testing.T, h store.Head, key store.ThreadKey, user string) {
	t.Helper()
	h.Unreadable, h.UpdatedAt = nil, time.Time{}
	sameHead(t, h, store.Head{Key: key, User: user})
}

func testUnreadableThreads(t *testing.T, s store.Store, breaks func(store.ThreadKey)) {
	for i, name := range []string{"a", "b", "c"} {
		create(t, s, key(name), at(time.Duration(i)*time.Hour))
	}
	bob := holdfast.Principal{Tenant: "acme", User: "bob"}
	create(t, s, key("his"), func(c *store.Commit) { c.User = "bob" })
	create(t, s, store.ThreadKey{Tenant: "other", Thread: "b"}, nil)
	breaks(key("b"))
	list := must(s.Threads(t.Context(), alice(), time.Time{}, 10))(t)
	wantThreads(t, s, alice(), time.Time{}, 10, "c", "b", "a")
	wantUnreadable(t, list[1].Unreadable)
	wantOnly(t, list[1], key("b"), "alice")
	if got, want := list[1].UpdatedAt, start().Add(time.Hour).Truncate(time.Minute); !got.Equal(want) {
		t.Errorf("last active at %s, want the minute %s", got, want)
	}
	for _, h := range []store.Head{list[0], list[2]} {
		if h.Unreadable != nil || h.ETag == "" {
			t.Errorf("the head of %s: %+v", h.Key, h)
		}
	}
	// It does not end a list that is read page by page.
	wantThreads(t, s, alice(), time.Time{}, 2, "c", "b")
	wantThreads(t, s, alice(), list[1].UpdatedAt, 2, "a")
	wantThreads(t, s, bob, time.Time{}, 10, "his")
	wantThreads(t, s, holdfast.Principal{Tenant: "other", User: "alice"}, time.Time{}, 10, "b")
}

func testUnreadableWalk(t *testing.T, s store.Store, breaks func(store.ThreadKey)) {
	for i := range 30 {
		create(t, s, key(fmt.Sprintf("t%02d", i)), nil)
	}
	breaks(key("t07"))
	found := map[string]error{}
	for after := ""; ; {
		page, next, err := s.Walk(t.Context(), after, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page {
			found[h.Key.Thread] = h.Unreadable
			if h.Unreadable != nil {
				wantOnly(t, h, key("t07"), "")
			}
		}
		if next == "" {
			break
		}
		after = next
	}
	expect(t, "threads found", len(found), 30)
	for name, err := range found {
		if (err != nil) != (name == "t07") {
			t.Errorf("thread %s: %v", name, err)
		}
	}
	wantUnreadable(t, found["t07"])
}

func testUnreadableHead(t *testing.T, s store.Store, breaks func(store.ThreadKey)) {
	create(t, s, key("a"), nil)
	moved := create(t, s, key("b"), nil)
	moved.commit(func(c *store.Commit) { c.User, c.State = "bob", []byte("{}") })
	for name, user := range map[string]string{"a": "alice", "b": "bob"} {
		breaks(key(name))
		h, err := s.Head(t.Context(), key(name))
		wantUnreadable(t, err)
		if h == nil {
			t.Fatalf("thread %s: nothing is known of it", name)
		}
		wantOnly(t, *h, key(name), user)
		expect(t, "position", h.Position(), store.Position{})
	}
}

func testUnreadableDelete(t *testing.T, s store.Store, breaks func(store.ThreadKey)) {
	whole := filled(t, s, key("whole"))
	wantError(t, s.Delete(t.Context(), whole.key, store.Position{}), store.ErrConflict)
	whole.check()
	filled(t, s, key("a"))
	breaks(key("a"))
	if err := s.Delete(t.Context(), key("a"), store.Position{}); err != nil {
		t.Fatal(err)
	}
	wantThreads(t, s, alice(), time.Time{}, 10, "whole")
	if _, err := s.Head(t.Context(), key("a")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the head of a removed thread: %v", err)
	}
	if err := s.Delete(t.Context(), key("a"), store.Position{}); err != nil {
		t.Errorf("removed again: %v", err)
	}
	again := create(t, s, key("a"), nil)
	again.check()
	wantThreads(t, s, alice(), time.Time{}, 10, "a", "whole")
	expect(t, "messages of the new thread", len(must(s.Messages(t.Context(), key("a")))(t)), 0)
	whole.check()
}

func testUnreadableTaken(t *testing.T, s store.Store, breaks func(store.ThreadKey)) {
	create(t, s, key("a"), nil)
	breaks(key("a"))
	c := (&thread{t: t, s: s, key: key("a"), head: store.Head{Key: key("a"), User: "bob", Next: 1}}).next()
	c.Fence = fence(1)
	if err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrConflict) {
		wantUnreadable(t, err)
	}
	// The refused commit's announcement makes nobody its user.
	wantThreads(t, s, holdfast.Principal{Tenant: "acme", User: "bob"}, time.Time{}, 10)
	h, err := s.Head(t.Context(), key("a"))
	wantUnreadable(t, err)
	wantOnly(t, *h, key("a"), "alice")
}
