package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// inChild runs the test in a process of its own, and reports whether it did. An
// engine that has failed is left behind, with goroutines that the other tests must
// not leave.
func inChild(t *testing.T) bool {
	t.Helper()
	if os.Getenv(leavesVariable) != "" {
		return false
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	child.Env = append(os.Environ(), leavesVariable+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return true
}

// fault makes one operation fail, or all of its kind while it is on.
type fault struct {
	kind  errorfs.OpKind
	file  string // a part of the name
	cause error
	after int32 // how many are let through first
	stays bool

	seen   atomic.Int32
	on     atomic.Bool
	hits   atomic.Int32
	tables atomic.Int32 // how many were begun after the first hit
}

// MaybeError implements [errorfs.Injector].
func (f *fault) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpCreate && f.hits.Load() > 0 && strings.HasSuffix(op.Path, ".sst") {
		f.tables.Add(1)
	}
	if !f.on.Load() || op.Kind != f.kind || !strings.Contains(filepath.Base(op.Path), f.file) {
		return nil
	}
	if f.seen.Add(1) <= f.after || !f.stays && f.hits.Load() > 0 {
		return nil
	}
	f.hits.Add(1)
	return f.cause
}

func (f *fault) String() string { return fmt.Sprintf("%v of %s", f.kind, f.file) }

// faulty opens a store whose file system has the faults. Its tables begin after a megabyte, so
// that a fault in them comes up soon.
func faulty(t *testing.T, dir string, f errorfs.Injector) *Store {
	t.Helper()
	s, err := openOn(errorfs.Wrap(vfs.Default, f), dir, Options{memTable: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// writer is a thread that is committed to, each commit until it has succeeded.
type writer struct {
	testing.TB
	s       *Store
	head    store.Head
	refused int
}

func newWriter(t testing.TB, s *Store, n int) *writer {
	return &writer{TB: t, s: s, head: store.Head{Key: threadKey(n), Next: 1}}
}

// next is the commit that follows.
func (w *writer) next(size int) *store.Commit {
	id := fmt.Sprintf("%s-%d", w.head.Key.Thread, w.head.Next)
	return &store.Commit{
		Key:       w.head.Key,
		ID:        id,
		Expect:    w.head.Position(),
		Fence:     store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		UpdatedAt: time.Now(),
		Records:   [][]byte{[]byte(id)},
		State:     []byte(id),
		Messages:  []store.Message{{ID: id, Data: random(size)}},
		Put: []store.Value{
			{Kind: "k", ID: fmt.Sprintf("%08d", w.head.Next), Data: random(size)},
		},
		Keep: map[store.Kind]int{"k": 20},
	}
}

func (w *writer) done(c *store.Commit) {
	w.head.Fence, w.head.Next, w.head.ETag = c.Fence, w.head.Next+1, c.ID
}

// write makes n commits.
func (w *writer) write(ctx context.Context, n, size int) {
	for range n {
		c := w.next(size)
		wait.For(w, func() error {
			err := w.s.Commit(ctx, c)
			if err == nil {
				return nil
			}
			if ctx.Err() != nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) {
				w.Fatalf("commit %s: %v", c.ID, err)
			}
			w.refused++
			if _, err := w.s.Head(ctx, w.head.Key); err != nil && !errors.Is(err, store.ErrNotFound) {
				w.Errorf("while commits are refused: %v", err)
			}
			return err
		})
		w.done(c)
	}
}

// check reads what was written.
func (w *writer) check() {
	w.Helper()
	head := w.stored()
	if head.Next != w.head.Next {
		w.Errorf("%s ends before record %d, want %d", head.Key, head.Next, w.head.Next)
	}
	whole(w.TB, w.s, head)
}

// stored is the thread's head.
func (w *writer) stored() *store.Head {
	w.Helper()
	head, err := w.s.Head(w.Context(), w.head.Key)
	if err != nil {
		w.Fatal(err)
	}
	return head
}

// has reports whether the commit is written, and the last one.
func (w *writer) has(c *store.Commit) bool { return w.stored().ETag == c.ID }

// TestWriteFails: after any write that fails the store goes on by itself. The write in
// progress is written once.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	if inChild(t) {
		return
	}
	for _, f := range []*fault{
		{kind: errorfs.OpFileWrite, file: ".log", cause: syscall.EIO, after: 7},
		{kind: errorfs.OpFileSyncData, file: ".log", cause: syscall.EIO, after: 7},
		{kind: errorfs.OpFileSyncData, file: ".log", cause: syscall.ENOSPC, after: 7},
		{kind: errorfs.OpCreate, file: ".log", cause: syscall.EMFILE},
		{kind: errorfs.OpReuseForWrite, file: ".log", cause: syscall.EMFILE},
		{kind: errorfs.OpCreate, file: ".sst", cause: syscall.EMFILE},
		{kind: errorfs.OpFileWrite, file: ".sst", cause: syscall.EIO},
		{kind: errorfs.OpFileSyncData, file: ".sst", cause: syscall.EIO},
		{kind: errorfs.OpFileWrite, file: "MANIFEST", cause: syscall.EIO},
		{kind: errorfs.OpFileSync, file: "MANIFEST", cause: syscall.EIO},
		{kind: errorfs.OpFileSync, file: "data", cause: syscall.EIO},
	} {
		t.Run(fmt.Sprintf("%s %v", f, f.cause), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			s := faulty(t, dir, f)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			writers := make([]*writer, 4)
			var wg sync.WaitGroup
			for n := range writers {
				writers[n] = newWriter(t, s, n)
				wg.Go(func() {
					writers[n].write(ctx, 10, 1000)
					f.on.Store(true)
					// Until it has come up, and a table was begun after it.
					for f.tables.Load() == 0 && ctx.Err() == nil {
						writers[n].write(ctx, 10, 10_000)
					}
					writers[n].write(ctx, 50, 10_000)
				})
			}
			wg.Wait()
			if f.hits.Load() != 1 || f.tables.Load() == 0 {
				t.Errorf("the fault came up %d times, and %d tables were begun after it", f.hits.Load(),
					f.tables.Load())
			}
			if err := s.CanCommit(ctx); err != nil {
				t.Errorf("it goes on, but says %v", err)
			}
			refused := 0
			for _, w := range writers {
				w.check()
				refused += w.refused
			}
			if refused == 0 {
				t.Error("no commit was refused, so nothing was tested")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := openAt(t, dir)
			for _, w := range writers {
				w.s = again
				w.check()
			}
		})
	}
}

// TestFullAtSync: while a disk that has no room says so only when it is to sync, no engine after
// another is left behind in vain, and the store goes on as soon as there is room.
func TestFullAtSync(t *testing.T) {
	t.Parallel()
	if inChild(t) {
		return
	}
	f := &fault{kind: errorfs.OpFileSyncData, cause: syscall.ENOSPC, stays: true}
	s := faulty(t, filepath.Join(t.TempDir(), "data"), f)
	w := newWriter(t, s, 0)
	w.write(t.Context(), 10, 1000)
	f.on.Store(true)
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		wait.Until(t, "failed writes", func() bool { return f.hits.Load() >= 2*maxLeft })
		f.on.Store(false)
	}()
	defer func() { <-freed }()
	w.write(t.Context(), 10, 1000)
	w.check()
	if w.refused == 0 || s.committer.left.Load() != 1 {
		t.Errorf("%d commits were refused, and %d engines are left behind", w.refused, s.committer.left.Load())
	}
}
