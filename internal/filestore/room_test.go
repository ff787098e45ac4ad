package filestore

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// crowded is a fault of everything that needs room in files of this kind.
func crowded(file string) *fault {
	return &fault{kind: errorfs.OpFileWrite, file: file, cause: syscall.ENOSPC, stays: true}
}

// mustRefuse makes a commit, which is refused at once.
func (w *writer) mustRefuse(c *store.Commit) {
	w.Helper()
	if !w.refuses(c) {
		w.Error("it is not refused")
	}
	if err := w.s.CanCommit(w.Context()); !errors.Is(err, syscall.ENOSPC) {
		w.Errorf("commits are refused, but it says %v", err)
	}
}

// refuses makes a commit and reports whether it is refused.
func (w *writer) refuses(c *store.Commit) bool {
	w.Helper()
	err := w.s.Commit(w.Context(), c)
	if err == nil {
		return false
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free space on its disk") ||
		!strings.Contains(err.Error(), w.s.dir) {
		w.Errorf("the refusal is %v", err)
	}
	return true
}

// checkRefused is check at a time when c, which was refused, may be written: the log can
// have room for it that nothing else can use.
func (w *writer) checkRefused(c *store.Commit) {
	w.Helper()
	before := w.stored()
	wrong := amiss(w.TB, w.s, before)
	if w.has(c) { // it may have been written in the middle of this
		if w.head.ETag != c.ID {
			w.done(c)
		}
		w.check()
		return
	}
	if before.Next != w.head.Next || len(wrong) > 0 {
		w.Errorf("%s ends before record %d, want %d: %q", before.Key, before.Next, w.head.Next, wrong)
	}
}

// TestRefusedForRoom: without room commits are refused at once and reading goes on.
// With room, what was refused is written once, although it was under way.
func TestRefusedForRoom(t *testing.T) {
	t.Parallel()
	f := crowded(".log")
	s := faulty(t, filepath.Join(t.TempDir(), "data"), f)
	a, b := newWriter(t, s, 1), newWriter(t, s, 2)
	a.write(t.Context(), 3, 100)
	b.write(t.Context(), 3, 100)
	wake, stop := s.Watch(a.head.Key)
	defer stop()
	f.on.Store(true)
	late := a.next(100)
	a.mustRefuse(late)
	a.mustRefuse(late)
	b.mustRefuse(b.next(100))
	a.check()
	b.check()
	select {
	case <-wake:
		t.Error("a commit that was refused has woken somebody")
	default:
	}
	f.on.Store(false)
	<-wake // the commit that waited was written, although nobody has tried it again
	for err := s.Commit(t.Context(), late); err != nil; err = s.Commit(t.Context(), late) {
		t.Fatal(err)
	}
	a.done(late)
	a.check()
	b.write(t.Context(), 3, 100)
	b.check()
	if err := s.CanCommit(t.Context()); err != nil {
		t.Errorf("there is room, but it says %v", err)
	}
}

// TestCloseWithoutRoom: closing does not wait for room.
func TestCloseWithoutRoom(t *testing.T) {
	t.Parallel()
	if inChild(t) {
		return
	}
	for _, file := range []string{".log", ".sst", "MANIFEST"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			f := crowded(file)
			dir := filepath.Join(t.TempDir(), "data")
			s := faulty(t, dir, f)
			w := newWriter(t, s, 1)
			w.write(t.Context(), 3, 100)
			f.on.Store(true)
			c := w.next(10_000)
			for range 10_000 {
				// On a slow disk, what is refused at first may have been written when it comes again.
				first := w.refuses(c)
				if first && w.refuses(c) {
					break
				}
				w.done(c)
				c = w.next(10_000)
			}
			if err := s.CanCommit(t.Context()); !errors.Is(err, syscall.ENOSPC) && !w.has(c) {
				t.Errorf("commits are refused, but it says %v", err)
			}
			w.checkRefused(c)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			w.s = openAt(t, dir)
			w.checkRefused(c)
		})
	}
}

// closed is a store with so many commits of that size, which was closed, and who wrote them.
func closed(t *testing.T, commits, size int) (dir string, w *writer) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	w = newWriter(t, openAt(t, dir), 1)
	w.write(t.Context(), commits, size)
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, w
}

// TestOpenWithoutRoom: a store whose disk is full can be read, and written when there
// is room.
func TestOpenWithoutRoom(t *testing.T) {
	t.Parallel()
	for file, kind := range map[string]errorfs.OpKind{".log": errorfs.OpCreate, ".sst": errorfs.OpFileWrite,
		"MANIFEST": errorfs.OpFileWrite, "dbtmp": errorfs.OpFileWrite} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir, w := closed(t, 50, 10_000)
			f := crowded(file)
			f.kind = kind
			f.on.Store(true)
			w.s = faulty(t, dir, f)
			w.check()
			w.mustRefuse(w.next(100))
			f.on.Store(false)
			w.write(t.Context(), 3, 100)
			w.check()
			if err := w.s.CanCommit(t.Context()); err != nil {
				t.Errorf("there is room, but it says %v", err)
			}
		})
	}
}

// TestOpenWhileFilesVanish: the engine that waits for room goes on to remove the logs that it
// has read, and the one that only reads, which has just seen them, looks again.
func TestOpenWhileFilesVanish(t *testing.T) {
	t.Parallel()
	dir, w := closed(t, 50, 10_000)
	full := crowded("MANIFEST")
	full.on.Store(true)
	var vanished atomic.Bool
	gone := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.hits.Load() > 0 && op.Kind == errorfs.OpStat && strings.HasSuffix(op.Path, ".log") &&
			!vanished.Swap(true) {
			return fs.ErrNotExist
		}
		return full.MaybeError(op)
	})
	w.s = faulty(t, dir, gone)
	w.check()
	if !vanished.Load() {
		t.Error("no log has vanished")
	}
	full.on.Store(false)
	w.write(t.Context(), 3, 100)
	w.check()
}

// TestOpenAndCloseWithoutRoom: a store that waits for room from its beginning can be
// closed.
func TestOpenAndCloseWithoutRoom(t *testing.T) {
	t.Parallel()
	if inChild(t) {
		return
	}
	dir, w := closed(t, 3, 100)
	f := crowded("MANIFEST")
	f.on.Store(true)
	w.s = faulty(t, dir, f)
	w.check()
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	w.s = openAt(t, dir)
	w.check()
}

// TestMakeWithoutRoom: a new store needs room.
func TestMakeWithoutRoom(t *testing.T) {
	t.Parallel()
	if inChild(t) {
		return
	}
	f := crowded("MANIFEST")
	f.on.Store(true)
	dir := filepath.Join(t.TempDir(), "data")
	_, err := openOn(errorfs.Wrap(vfs.Default, f), dir, Options{})
	if !errors.Is(err, syscall.ENOSPC) ||
		!strings.Contains(err.Error(), "free space on its disk, or raise its limit, or use another folder") {
		t.Fatalf("the error is %v", err)
	}
	newWriter(t, openAt(t, dir), 1).write(t.Context(), 3, 100)
}

// TestDiskGone: a disk that fails again and again is given up. Reading goes on.
func TestDiskGone(t *testing.T) {
	t.Parallel()
	if inChild(t) {
		return
	}
	f := &fault{kind: errorfs.OpFileWrite, file: "", cause: syscall.EIO, stays: true}
	s := faulty(t, filepath.Join(t.TempDir(), "data"), f)
	s.pause = time.Millisecond
	w := newWriter(t, s, 1)
	w.write(t.Context(), 3, 100)
	f.on.Store(true)
	c := w.next(100)
	wait.For(t, func() error {
		err := s.Commit(t.Context(), c)
		if err == nil {
			t.Fatal("a commit succeeds")
		}
		if strings.Contains(err.Error(), "start the server again") {
			return nil
		}
		return err
	})
	if err := s.CanCommit(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("it says %v", err)
	}
	w.check()
}
