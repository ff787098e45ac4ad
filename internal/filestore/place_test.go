package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// TestFolderGone: a store whose folder was removed or replaced refuses commits as soon as
// anybody looks: a monitor, or the server's heartbeat. Back in its place, it goes on.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	looks := map[string]func(*testing.T, *Store){
		"a monitor":     func(t *testing.T, s *Store) { _ = s.CanCommit(t.Context()) },
		"the heartbeat": func(t *testing.T, s *Store) { _ = s.Announce(t.Context(), "p", time.Minute) },
	}
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"removed": func(*testing.T, string) {},
		"replaced by a copy": func(t *testing.T, dir string) {
			if err := os.CopyFS(dir, os.DirFS(dir+".old")); err != nil {
				t.Fatal(err)
			}
		},
		"replaced by a file": func(t *testing.T, dir string) { put(t, "", filepath.Dir(dir), filepath.Base(dir)) },
	} {
		for who, look := range looks {
			t.Run(name+", noticed by "+who, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "data")
				s := openAt(t, dir)
				w := newWriter(t, s, 1)
				w.write(t.Context(), 2, 100)
				if err := os.Rename(dir, dir+".old"); err != nil {
					t.Fatal(err)
				}
				spoil(t, dir)
				look(t, s)
				for what, err := range map[string]error{"a commit": s.Commit(t.Context(), w.next(10)),
					"a check": s.CanCommit(t.Context())} {
					if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), dir+": ") ||
						!strings.Contains(err.Error(), "removed or replaced") {
						t.Errorf("%s: %v, want what happened to the folder", what, err)
					}
				}
				if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".old", dir)); err != nil {
					t.Fatal(err)
				}
				look(t, s)
				w.write(t.Context(), 2, 100)
			})
		}
	}
}

// TestLockGone: without its lock, another server may write to the same files. So commits are
// refused as soon as anybody looks, like those to a folder that was replaced.
func TestLockGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a file that is locked cannot be removed")
	}
	for name, replaced := range map[string]bool{"removed": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			s := openAt(t, dir)
			w := newWriter(t, s, 1)
			w.write(t.Context(), 2, 100)
			lock := filepath.Join(dir, lockFileName)
			if err := os.Rename(lock, lock+".old"); err != nil {
				t.Fatal(err)
			}
			if replaced {
				openAt(t, dir) // as a second server does
			}
			_ = s.Announce(t.Context(), "p", time.Minute) // the heartbeat
			for what, err := range map[string]error{"a commit": s.Commit(t.Context(), w.next(10)),
				"a check": s.CanCommit(t.Context())} {
				if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "LOCK was removed or replaced") {
					t.Errorf("%s: %v, want what happened to the lock", what, err)
				}
			}
			if err := os.Rename(lock+".old", lock); err != nil {
				t.Fatal(err)
			}
			if !replaced {
				_ = s.CanCommit(t.Context())
				w.write(t.Context(), 2, 100)
			}
		})
	}
}

// TestNoStoreWhereTheFolderWas: an engine that fails because its folder is gone is not
// opened again until the folder is back: it would begin an empty store.
func TestNoStoreWhereTheFolderWas(t *testing.T) {
	if inChild(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	s.pause = time.Microsecond
	w := newWriter(t, s, 1)
	w.write(t.Context(), 2, 100)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.committer.writing.db.Flush() }() // never returns
	wait.Until(t, "the engine to be left", func() bool { return s.committer.left.Load() > 0 })
	if err := s.Commit(t.Context(), w.next(10)); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a commit: %v, want ErrRefused", err)
	}
	if err := os.Rename(dir+".old", dir); err != nil {
		t.Fatal(err)
	}
	w.write(t.Context(), 2, 100)
	w.check()
}
