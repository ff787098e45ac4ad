// Package storetest is the conformance suite of [holdfast.Store]: what the
// interface says in words, as tests. A store that passes it can keep the
// threads of a server.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) holdfast.Store {
//			s := open(t, t.TempDir())
//			t.Cleanup(func() { s.Close() })
//			return s
//		}, storetest.Options{})
//	}
//
// [Compare] goes further: it runs random commands against the store and against
// another one that is known to be right, and expects the same results.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Options tell the suite what else the store can do.
type Options struct {
	// Reopen closes the store and opens it again with what it has kept. Leave it
	// nil for a store that keeps nothing.
	Reopen func(t *testing.T, s holdfast.Store) holdfast.Store
}

// Run runs the suite. open returns a new, empty store for each test, and has it
// closed when the test ends. The tests run in parallel.
func Run(t *testing.T, open func(t *testing.T) holdfast.Store, opts Options) {
	t.Helper()
	groups := map[string]map[string]func(*testing.T, holdfast.Store){
		"Commit":    commitTests(),
		"Read":      readTests(),
		"Directory": directoryTests(),
		"Presence":  presenceTests(),
		"Notify":    notifyTests(),
		"Ledger":    ledgerTests(),
		"Names":     nameTests(),
	}
	for group, tests := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for name, f := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f(t, open(t))
				})
			}
		})
	}
	if opts.Reopen != nil {
		t.Run("Reopen", func(t *testing.T) {
			t.Parallel()
			testReopen(t, open(t), opts.Reopen)
		})
	}
}

// start is a moment that all tests count from. It has nanoseconds, and is not
// at the beginning of anything.
func start() time.Time { return time.Date(2026, 3, 1, 12, 34, 56, 789012345, time.UTC) }

func key(thread string) holdfast.ThreadKey {
	return holdfast.ThreadKey{Tenant: "acme", Thread: thread}
}

func alice() holdfast.Principal { return holdfast.Principal{Tenant: "acme", User: "alice"} }

// fence makes a fence with a nonce of its own.
func fence(epoch uint64) holdfast.Fence {
	return holdfast.Fence{Epoch: epoch, Nonce: fmt.Sprintf("%016x", rand.Uint64())}
}

func newID() string { return fmt.Sprintf("c-%016x", rand.Uint64()) }

// thread commits to one thread and remembers where it stands.
type thread struct {
	t    *testing.T
	s    holdfast.Store
	key  holdfast.ThreadKey
	head holdfast.Head // as the last commit must have left it
}

// create makes a thread of alice with one commit, which change may add to.
func create(t *testing.T, s holdfast.Store, k holdfast.ThreadKey, change func(c *holdfast.Commit)) *thread {
	t.Helper()
	th := &thread{t: t, s: s, key: k, head: holdfast.Head{Key: k, User: "alice", Next: 1}}
	th.commit(func(c *holdfast.Commit) {
		c.Fence = fence(1)
		if change != nil {
			change(c)
		}
	})
	return th
}

// next returns a commit that follows the head and changes nothing else.
func (th *thread) next() *holdfast.Commit {
	return &holdfast.Commit{
		Key: th.key, ID: newID(), Expect: th.head.Position(), User: th.head.User,
		Fence: th.head.Fence, Process: th.head.Process, UpdatedAt: start(),
	}
}

// commit makes a commit that follows the head and must succeed.
func (th *thread) commit(change func(c *holdfast.Commit)) *holdfast.Commit {
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

func headAfter(h holdfast.Head, c *holdfast.Commit) holdfast.Head {
	after := holdfast.Head{
		Key: c.Key, User: c.User, Fence: c.Fence, Process: c.Process, ETag: c.ID,
		Next: h.Next + uint64(len(c.Records)), UpdatedAt: c.UpdatedAt, State: h.State,
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

func sameHead(t *testing.T, got, want holdfast.Head) {
	t.Helper()
	if text(got) != text(want) || !bytes.Equal(got.State, want.State) {
		t.Errorf("head is\n\t%s, want\n\t%s", text(got), text(want))
	}
}

// text shows a head so that equal heads have equal texts: how a time is held in
// memory is not part of it.
func text(h holdfast.Head) string {
	return fmt.Sprintf("%q %q fence %d %q process %q etag %q next %d at %s, %d bytes of state",
		h.Key, h.User, h.Fence.Epoch, h.Fence.Nonce, h.Process, h.ETag, h.Next, h.UpdatedAt.UTC().Format(time.RFC3339Nano), len(h.State))
}

// must returns a function that gives the value, or ends the test with the
// error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want one that is %q", err, want)
	}
}
