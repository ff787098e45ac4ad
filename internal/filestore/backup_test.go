package filestore

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// TestBackup: a store that is being written is copied as it is at one moment, with
// everything that was acknowledged before.
func TestBackup(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	s := openAt(t, filepath.Join(base, "data"))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range 4 {
		w := newWriter(t, s, n)
		w.write(t.Context(), 20, 3000)
		wg.Go(func() {
			for ctx.Err() == nil {
				w.write(t.Context(), 1, 3000)
			}
		})
	}
	for n := range 3 {
		if n == 1 {
			if err := s.committer.writing.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		before := map[store.ThreadKey]uint64{}
		for n := range 4 {
			head, err := s.Head(t.Context(), threadKey(n))
			if err != nil {
				t.Fatal(err)
			}
			before[head.Key] = head.Next
		}
		dir := filepath.Join(base, "a", "backup"+string(rune('0'+n)))
		if err := s.Backup(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		checkBackup(t, dir, before)
	}
	stop()
	wg.Wait()
	exists := filepath.Join(base, "exists")
	if err := os.Mkdir(exists, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), exists); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup in a directory that is there: %v", err)
	}
}

// TestBackupImpossible: the error of a folder that cannot be made says so, and what to do.
func TestBackupImpossible(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	from := filepath.Join(base, "data")
	s := openAt(t, from)
	put(t, "", base, "file")
	if err := os.Symlink(filepath.Join(base, "nowhere"), filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(base, "file", "backup"), filepath.Join(base, "link", "backup")}
	if runtime.GOOS == "linux" {
		dirs = append(dirs, "/proc/nowhere/backup")
	}
	for _, dir := range dirs {
		for name, backup := range map[string]func() error{
			"of an open store":  func() error { return s.Backup(t.Context(), dir) },
			"of a closed store": func() error { return Copy(t.Context(), made(t), dir) },
		} {
			err := backup()
			if err == nil || errors.Is(err, store.ErrUnreadable) || errors.Is(err, fs.ErrExist) ||
				!strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "the folder cannot be made") ||
				!strings.Contains(err.Error(), "name a path where") {
				t.Errorf("a backup %s to %s: %v", name, dir, err)
			}
		}
	}
}

// checkBackup reads a backup, which changes nothing in it, and then goes on with it.
func checkBackup(t *testing.T, dir string, atLeast map[store.ThreadKey]uint64) {
	t.Helper()
	before := files(t, dir)
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for key, next := range atLeast {
		head, err := s.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if head.Next < next {
			t.Errorf("%s ends before record %d, but %d was acknowledged", key, head.Next, next-1)
		}
		whole(t, s, head)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Errorf("reading has changed %s", dir)
	}
	newWriter(t, openAt(t, dir), 100).write(t.Context(), 5, 100)
}

// TestCopy: a store that nobody has open is copied without a byte of it being changed.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := made(t)
	put(t, "{}", dir, serverFile) // of a server that was killed
	before := files(t, dir)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := Copy(t.Context(), dir, backup); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Error("the store was changed")
	}
	if _, err := os.Stat(filepath.Join(backup, serverFile)); err == nil {
		t.Error("what the server says of itself is in the backup")
	}
	checkBackup(t, backup, map[store.ThreadKey]uint64{threadKey(1): 4})
	if err := Copy(t.Context(), dir, backup); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a copy to a directory that is there: %v", err)
	}
	openAt(t, dir)
	if err := Copy(t.Context(), dir, backup+"2"); !errors.Is(err, store.ErrStoreLocked) {
		t.Errorf("a copy of a store that is in use: %v", err)
	}
	if err := Copy(t.Context(), filepath.Join(t.TempDir(), "data"), backup+"2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of nothing: %v", err)
	}
}

// TestCopyDamaged: a copy that could not be opened is an error, and is removed.
func TestCopyDamaged(t *testing.T) {
	t.Parallel()
	dir := made(t)
	truncate(t, dir, "MANIFEST*")
	backup := filepath.Join(t.TempDir(), "backup")
	if err := Copy(t.Context(), dir, backup); !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("a copy of a damaged store: %v", err)
	}
	if _, err := os.Stat(backup); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy is there: %v", err)
	}
}

// TestBackupDamaged: a backup of a running store that could not be opened is an error, and
// is removed.
func TestBackupDamaged(t *testing.T) {
	t.Parallel()
	dir := made(t)
	s := openAt(t, dir) // which moves what is in the log to a table
	table := matching(t, dir, "*.sst")[0]
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	text[10] ^= 1
	put(t, string(text), table)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), backup); !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("a backup of a damaged store: %v", err)
	}
	if _, err := os.Stat(backup); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the backup is there: %v", err)
	}
}

// TestBackupOfClosed: a store that was closed meanwhile is not damaged.
func TestBackupOfClosed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	s := openAt(t, filepath.Join(base, "data"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(base, "backup")
	if err := s.Backup(t.Context(), to); !errors.Is(err, folder.ErrClosed) || errors.Is(err, store.ErrUnreadable) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}
