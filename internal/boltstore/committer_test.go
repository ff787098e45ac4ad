package boltstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

func threadKey(n int) store.ThreadKey {
	return store.ThreadKey{Tenant: "acme", Thread: fmt.Sprint("t", n)}
}

// first is the first commit of a thread.
func first(key store.ThreadKey, records ...[]byte) *store.Commit {
	return &store.Commit{
		Key: key, ID: "c1", Expect: store.Position{Next: 1}, User: "alice",
		Fence: store.Fence{Epoch: 1, Nonce: "abcdefgh"}, UpdatedAt: time.Now(), Records: records,
	}
}

// following is the commit after c.
func following(c *store.Commit, records ...[]byte) *store.Commit {
	next := *c
	next.ID = c.ID + "'"
	next.Expect = store.Position{Fence: c.Fence, Next: c.Expect.Next + uint64(len(c.Records)), ETag: c.ID}
	next.Records, next.State, next.Put = records, nil, nil
	return &next
}

// TestGrouped: many writers share a transaction, and with it a sync.
func TestGrouped(t *testing.T) {
	t.Parallel()
	const writers, commits = 64, 20
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	before := txid(t, s)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			c := first(threadKey(w), []byte("r"))
			for range commits {
				if err := s.Commit(t.Context(), c); err != nil {
					t.Errorf("Commit: %v", err)
					return
				}
				c = following(c, []byte("r"))
			}
		})
	}
	wg.Wait()
	transactions := txid(t, s) - before
	t.Logf("%d commits in %d transactions", writers*commits, transactions)
	if transactions > writers*commits/4 {
		t.Errorf("%d commits of %d writers took %d transactions", writers*commits, writers, transactions)
	}
}

// blocked holds bbolt's write lock, so that the committer takes one batch and
// waits, until free is called.
func blocked(t *testing.T, s *Store) (free func()) {
	t.Helper()
	tx, err := s.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
}

// TestNotTaken: until the committer takes it, a commit can be cancelled without
// a trace, and is refused when the store is closed. Here nobody takes anything.
func TestNotTaken(t *testing.T) {
	t.Parallel()
	s := &Store{requests: make(chan *request), closing: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.submit(ctx, &post{}); err == nil || err.Error() != context.DeadlineExceeded.Error() {
		t.Errorf("a write that was not taken: %v, want the bare context's error", err)
	}
	close(s.closing)
	if err := s.submit(t.Context(), &post{}); !errors.Is(err, errClosed) {
		t.Errorf("a write that was not taken before Close: %v", err)
	}
}

func TestStoppedWaiting(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	free := blocked(t, s)
	defer free()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c := first(threadKey(1), []byte("r"))
	err := s.Commit(ctx, c)
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() == context.DeadlineExceeded.Error() {
		t.Errorf("a commit whose caller stopped waiting: %v, want an error that says that the result is unknown", err)
	}
	free()
	// The retry succeeds, and it was written once.
	if err := s.Commit(t.Context(), c); err != nil {
		t.Errorf("the retry: %v", err)
	}
	if records, err := s.Records(t.Context(), c.Key, store.Cursor{}, 10); err != nil || len(records) != 1 {
		t.Errorf("%d records, %v, want 1", len(records), err)
	}
}

// TestBatchOfAll: in one transaction a commit sees those before it, and a
// refused one does not concern the others.
func TestBatchOfAll(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	a, b := first(threadKey(1), []byte("a")), first(threadKey(2), []byte("b"))
	stale := following(a)
	stale.Expect.Fence.Nonce = "other"
	orphan := following(b)
	orphan.Messages = []store.Message{{ID: "m", Parent: "unknown"}}
	ops := []operation{
		s.newCommit(a), s.newCommit(stale), s.newCommit(b), s.newCommit(orphan), s.newCommit(a),
		s.newCommit(following(a, []byte("a2"))), &post{key: threadKey(2), id: "i", entry: newEntry(s.codec, appendName(nil, "i"), nil)},
		&post{key: threadKey(3), id: "i"}, s.newCommit(following(b, []byte("b2"))),
	}
	want := []error{nil, store.ErrFenced, nil, store.ErrInvalid, errAlready, nil, nil, store.ErrNotFound, nil}
	var batch []*request
	for _, op := range ops {
		batch = append(batch, &request{op: op})
	}
	results, err := s.writeBatch(batch, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !errors.Is(results[i], want[i]) || (want[i] == nil) != (results[i] == nil) {
			t.Errorf("operation %d: %v, want %v", i, results[i], want[i])
		}
	}
	for n := 1; n <= 2; n++ {
		if h, err := s.Head(t.Context(), threadKey(n)); err != nil || h.Next != 3 || h.ETag != "c1'" {
			t.Errorf("thread %d: %+v, %v", n, h, err)
		}
	}
}

// TestDiskFull: when the file cannot grow, the batch fails and nothing of it is
// there; when it can again, the same commit succeeds.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	c := first(threadKey(1))
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.db.MaxSize = 1 << 20
	large := following(c, random(20<<20))
	err := s.Commit(t.Context(), large)
	for _, refusal := range []error{store.ErrFenced, store.ErrConflict, store.ErrInvalid, context.Canceled} {
		if err == nil || errors.Is(err, refusal) {
			t.Fatalf("on a full disk: %v, want an I/O error", err)
		}
	}
	if h, err := s.Head(t.Context(), c.Key); err != nil || h.Next != 1 {
		t.Errorf("after the failure: %+v, %v", h, err)
	}
	s.db.MaxSize = 0
	if err := s.Commit(t.Context(), large); err != nil {
		t.Errorf("the retry: %v", err)
	}
	if h, err := s.Head(t.Context(), c.Key); err != nil || h.Next != 2 {
		t.Errorf("after the retry: %+v, %v", h, err)
	}
}

// TestSettledAfterFailure: a retry that finds its commit after a failed
// transaction is only acknowledged by another transaction, and what is new is
// written only after that one.
func TestSettledAfterFailure(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	c := first(threadKey(1))
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	retry := []*request{{op: s.newCommit(c)}}
	for failed, want := range map[bool]int{false: 0, true: 1} {
		before := txid(t, s)
		if results, err := s.writeBatch(retry, failed); err != nil || !errors.Is(results[0], errAlready) {
			t.Fatalf("the retry: %v, %v", results, err)
		}
		if wrote := txid(t, s) - before; wrote != want {
			t.Errorf("after a failure: %v: the retry wrote %d transactions, want %d", failed, wrote, want)
		}
	}
	before := txid(t, s)
	if results, err := s.writeBatch([]*request{{op: s.newCommit(following(c))}}, true); err != nil || results[0] != nil {
		t.Fatalf("a new commit: %v, %v", results, err)
	}
	if wrote := txid(t, s) - before; wrote != 2 {
		t.Errorf("after a failure a new commit wrote %d transactions, want 2", wrote)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	free := blocked(t, s)
	defer free()
	underWay := &request{op: s.newCommit(first(threadKey(1))), done: make(chan error, 1)}
	s.requests <- underWay
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait for the write under way: %v", err)
	default:
	}
	free()
	if err := errors.Join(<-closed, <-underWay.done); err != nil {
		t.Error(err)
	}
	if err := s.Commit(t.Context(), first(threadKey(3))); !errors.Is(err, errClosed) {
		t.Errorf("a commit after Close: %v", err)
	}
	if _, err := s.Head(t.Context(), threadKey(1)); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a read after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// TestSmallCommitsStaySmall: what a commit writes depends on what is new, not
// on how long the thread is or how large its values are.
func TestSmallCommitsStaySmall(t *testing.T) {
	t.Parallel()
	// At most a full leaf with three neighbours of the largest size, two pages
	// above it, and the roots.
	const limit = 4*maxInline + 5*4096
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	written := func(c *store.Commit) int64 {
		before := s.db.Stats().TxStats
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		after := s.db.Stats().TxStats
		return after.GetPageAlloc() - before.GetPageAlloc()
	}
	c := first(threadKey(1), random(1<<20))
	c.State = random(5 << 20)
	for i := range 50 {
		c.Put = append(c.Put, store.Value{Kind: "k", ID: fmt.Sprint(i), Data: random(3000 + 1000*i)})
		c.Messages = append(c.Messages, store.Message{ID: fmt.Sprint(i), Data: random(2500)})
	}
	written(c)
	c.Messages = nil
	var sum, most int64
	for _, size := range []int{100, maxInline - 100, 20_000, 5 << 20} {
		c = following(c, random(120), random(size), random(2500))
		written(c)
		for range 100 {
			c = following(c, random(120))
			n := written(c)
			sum, most = sum+n, max(most, n)
		}
	}
	t.Logf("a commit of one small record writes %d bytes, at most %d", sum/400, most)
	if most > limit {
		t.Errorf("a commit of one small record writes %d bytes in a long thread, %d are allowed", most, limit)
	}
}

// TestNothingLeftOver: what is removed takes its chunks along.
func TestNothingLeftOver(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	large := func(kind store.Kind, id string) store.Value {
		return store.Value{Kind: kind, ID: id, Data: random(50_000)}
	}
	c := first(threadKey(1))
	c.State = random(50_000)
	c.Put = []store.Value{large("deleted", "a"), large("cleared", "a"), large("trimmed", "a"), large("trimmed", "b"), large("replaced", "a")}
	next := following(c)
	next.State, next.InboxSeen = []byte("small"), 1
	next.Put = []store.Value{{Kind: "replaced", ID: "a"}}
	next.Delete, next.Clear = []store.ValueID{{Kind: "deleted", ID: "a"}}, []store.Kind{"cleared"}
	next.Keep = map[store.Kind]int{"trimmed": 0}
	err := errors.Join(
		s.Commit(t.Context(), c),
		s.Post(t.Context(), c.Key, store.InboxItem{ID: "i", Data: random(50_000)}),
		s.Commit(t.Context(), next),
	)
	if err != nil {
		t.Fatal(err)
	}
	err = s.view(t.Context(), func(txn *txn) error {
		if left := txn.chunks.Stats().KeyN; left != 0 {
			t.Errorf("%d chunks are left over", left)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
