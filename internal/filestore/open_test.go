package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

func TestOpenLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := openAt(t, dir)
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		_, err := Open(dir, opts)
		if !errors.Is(err, store.ErrStoreLocked) {
			t.Fatalf("the second Open: %v, want ErrStoreLocked", err)
		}
		for _, want := range []string{dir, "another process: it has", "stop it", "another folder"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the text does not say %q: %s", want, err)
			}
		}
	}
	newWriter(t, first, 1).write(t.Context(), 1, 10)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, dir)
}

// TestOpenWaits: a store that is about to be closed is waited for.
func TestOpenWaits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := openAt(t, dir)
	opened := make(chan error)
	go func() {
		s, err := Open(dir, Options{LockTimeout: time.Minute})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// TestOpenModes: everything that is made, then or later, is its owner's only, and so is what
// is copied. A copy made by the umask becomes so.
func TestOpenModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it has no modes")
	}
	base := t.TempDir()
	folder := filepath.Join(base, "a")
	dir := filepath.Join(folder, "data")
	s := openAt(t, dir)
	w := newWriter(t, s, 1)
	for range 3 {
		w.write(t.Context(), 3, 1000)
		if err := s.committer.writing.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.committer.writing.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	onlyOwners(t, folder)
	backup := filepath.Join(base, "b", "open")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	onlyOwners(t, filepath.Dir(backup))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(base, "c", "closed")
	if err := Copy(t.Context(), dir, closed); err != nil {
		t.Fatal(err)
	}
	onlyOwners(t, filepath.Dir(closed))
	for name := range files(t, dir) {
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s = openAt(t, dir)
	onlyOwners(t, folder)
	again := filepath.Join(base, "d", "open")
	if err := s.Backup(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	onlyOwners(t, filepath.Dir(again))
}

// onlyOwners checks that a folder and what is in it are for their owner only.
func onlyOwners(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Pebble needs it no more
		}
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: folder.FolderMode, false: folder.FileMode}[d.IsDir()]; info.Mode().
			Perm() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// files are the contents of all files of a directory, but for the lock.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockFileName {
			return err
		}
		text, err := os.ReadFile(name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refused opens the directory, which must fail and leave it as it is.
func refused(t *testing.T, dir string) error {
	t.Helper()
	before := files(t, filepath.Dir(dir))
	s, refusal := Open(dir, Options{})
	if refusal == nil {
		t.Fatal(errors.Join(errors.New("it was opened"), s.Close()))
	}
	if !maps.Equal(before, files(t, filepath.Dir(dir))) {
		t.Error("what was refused was changed")
	}
	if !strings.HasPrefix(refusal.Error(), "open the store "+dir+": ") || strings.Count(refusal.Error(), dir) != 1 {
		t.Errorf("the text does not begin with the folder, or names it again: %s", refusal)
	}
	return refusal
}

// made makes a store with a thread in it.
func made(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	newWriter(t, s, 1).write(t.Context(), 3, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// put writes a file of a directory.
func put(t *testing.T, text string, name ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(name...), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenNewerFormat(t *testing.T) {
	t.Parallel()
	dir := made(t)
	put(t, fmt.Sprintf("holdfast-data %d\n", Format+1), dir, formatFile)
	err := refused(t, dir)
	if !errors.Is(err, store.ErrVersionTooNew) || !strings.Contains(err.Error(), fmt.Sprint("format ", Format+1)) ||
		!strings.Contains(err.Error(), fmt.Sprint("formats up to ", Format)) {
		t.Errorf("error is %v, want ErrVersionTooNew with both versions", err)
	}
}

// TestOpenEarlierFormat: a store of an earlier layout gets this one when it is opened for writing, and
// not before, so that no version that does not know it writes to the store from then on.
func TestOpenEarlierFormat(t *testing.T) {
	t.Parallel()
	dir := made(t)
	put(t, "holdfast-data 1\n", dir, formatFile)
	for _, c := range []struct {
		readOnly bool
		want     string
	}{{true, "holdfast-data 1\n"}, {false, fmt.Sprintf("holdfast-data %d\n", Format)}} {
		s, err := Open(dir, Options{ReadOnly: c.readOnly})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Head(t.Context(), threadKey(1)); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, formatFile)); err != nil || string(text) != c.want {
			t.Errorf("read only %t: the folder says %q, %v; want %q", c.readOnly, text, err, c.want)
		}
	}
}

// TestOpenNewerEngine: neither is one whose files are in a form that this version's Pebble
// does not know.
func TestOpenNewerEngine(t *testing.T) {
	t.Parallel()
	dir := made(t)
	remove(t, dir, "marker.format-version*")
	put(t, "", dir, "marker.format-version.000009.099")
	if err := refused(t, dir); !errors.Is(err, store.ErrVersionTooNew) ||
		!strings.Contains(err.Error(), "install a newer version") {
		t.Errorf("error is %v, want ErrVersionTooNew and what to do", err)
	}
}

// TestOpenImpossible: the error names the folder, once, and says what to do.
func TestOpenImpossible(t *testing.T) {
	t.Parallel()
	const damaged = "it was left as it is: put a backup in its place, save what is whole with holdfast " +
		"salvage, or use another folder"
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string) string
		want  string
	}{
		"the format is not one": {func(t *testing.T, dir string) string {
			put(t, "holdfast-data 0\n", dir, formatFile)
			return dir
		}, damaged},
		"the format is damaged": {func(t *testing.T, dir string) string {
			put(t, "holdfqst-data 1\n", dir, formatFile)
			return dir
		}, damaged},
		"the format is missing": {func(t *testing.T, dir string) string { remove(t, dir, formatFile); return dir },
			"name a new or an empty folder"},
		"the marker is missing": {func(t *testing.T, dir string) string {
			remove(t, dir, "marker.manifest*")
			return dir
		},
			damaged},
		"the list is missing": {func(t *testing.T, dir string) string { remove(t, dir, "MANIFEST*"); return dir },
			damaged},
		"the list is empty": {func(t *testing.T, dir string) string { truncate(t, dir, "MANIFEST*"); return dir },
			damaged},
		"the version is missing": {func(t *testing.T, dir string) string {
			remove(t, dir, "marker.format*")
			return dir
		},
			damaged},
		"a file in its way": {func(t *testing.T, dir string) string {
			put(t, "", dir, "file")
			return filepath.Join(dir, "file", "data")
		}, "a part of this path is a file"},
		"a file in its place": {func(t *testing.T, dir string) string {
			put(t, "", dir, "file")
			return filepath.Join(dir, "file")
		}, "a part of this path is a file"},
		"of an early build": {func(t *testing.T, dir string) string {
			put(t, "holdfast 1\n", dir, formatFile)
			return dir
		}, "export its threads with that build"},
		"somebody else's folder": {func(t *testing.T, dir string) string {
			remove(t, dir, "*")
			put(t, "", dir, "notes.txt")
			return dir
		}, "it has no file FORMAT, but has notes.txt: this is not a store: it was left as it is: name " +
			"a new or an empty folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := refused(t, c.spoil(t, made(t))); !strings.Contains(err.Error(), c.want) {
				t.Errorf("the text does not say %q: %s", c.want, err)
			}
		})
	}
}

// TestOpenLeavesForeign: a folder that is refused is left as it was, without a lock of ours.
func TestOpenLeavesForeign(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"somebody else's folder":     {"notes.txt": "mine"},
		"a store of an early build":  {formatFile: "holdfast 1\n"},
		"a store of a newer version": {formatFile: "holdfast-data 9\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range files {
				put(t, text, dir, file)
			}
			refused(t, dir)
			if _, err := os.Lstat(filepath.Join(dir, lockFileName)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder has our lock: %v", err)
			}
		})
	}
}

// matching are the files of the directory that match the pattern.
func matching(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s, %v", pattern, err)
	}
	return names
}

func remove(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, name := range matching(t, dir, pattern) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func truncate(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, name := range matching(t, dir, pattern) {
		if err := os.Truncate(name, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenVacant: a new store can be made where a file system keeps things of its own.
func TestOpenVacant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, "", dir, ".gitignore")
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	newWriter(t, openAt(t, dir), 1).write(t.Context(), 1, 10)
}

// TestReadOnly: a store can be read without a byte of it being changed, by several at
// a time.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	dir := made(t)
	before := files(t, dir)
	for range 2 {
		s, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		w := newWriter(t, s, 1)
		head, err := s.Head(t.Context(), w.head.Key)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, s, head)
		w.head = *head
		if err := s.Commit(t.Context(), w.next(10)); err == nil || !strings.Contains(err.Error(), "for reading only") {
			t.Errorf("a commit to a store that is only read: %v", err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if !maps.Equal(before, files(t, dir)) {
				t.Error("what was only read was changed")
			}
		}()
	}
	if _, err := Open(dir, Options{LockTimeout: time.Millisecond}); !errors.Is(err, store.ErrStoreLocked) {
		t.Errorf("a server opens a store that somebody reads: %v", err)
	}
	missing := filepath.Join(t.TempDir(), "data")
	if _, err := Open(missing, Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store that is not there: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("reading has made a folder")
	}
}

// TestAdvice has what no test can bring about everywhere.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const dir = "/srv/data"
	for cause, want := range map[error]string{
		&fs.PathError{Op: "open", Path: dir,
			Err: syscall.EACCES}: "permission denied: the server's user must be able to write the " +
			"folder and what is in it",
		&fs.PathError{Op: "open", Path: dir,
			Err: syscall.EROFS}: "read-only file system: the server's user must",
		&fs.PathError{Op: "mkdir", Path: "/srv",
			Err: syscall.ENOSPC}: "mkdir /srv: no space left on device: it cannot grow: free space on its disk, or " +
			"raise its limit, or use another folder",
		fmt.Errorf("write: %w", syscall.EDQUOT):                              "free space on its disk",
		&fs.PathError{Op: "open", Path: dir, Err: errors.New("odd failure")}: "odd failure",
	} {
		err := folder.OpenFailed(dir, false, cause)
		if !errors.Is(err, cause) && !errors.Is(err, errors.Unwrap(cause)) {
			t.Errorf("%v is lost in %v", cause, err)
		}
		if !strings.HasPrefix(err.Error(), "open the store "+dir+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("the text does not say %q: %s", want, err)
		}
	}
}

// TestAdviceToReaders: who looks into a store gets other advice than a server.
func TestAdviceToReaders(t *testing.T) {
	t.Parallel()
	denied := folder.OpenFailed("/srv/data", true, &fs.PathError{Op: "open", Path: lockFileName, Err: syscall.EACCES})
	if want := "do this as a user who can read the folder"; !strings.Contains(denied.Error(), want) {
		t.Errorf("the text does not say %q: %s", want, denied)
	}
	for name, dir := range map[string]string{"empty": t.TempDir(), "without its format": made(t)} {
		if name != "empty" {
			remove(t, dir, formatFile)
		}
		_, err := Open(dir, Options{ReadOnly: true})
		if want := "it has no file FORMAT: this is not a store: name the folder of a store"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: the text does not say %q: %v", name, want, err)
		}
		if _, err := os.Stat(filepath.Join(dir, formatFile)); err == nil {
			t.Errorf("%s: reading has made a store", name)
		}
	}
}

// TestSalvageFailedAdvice: a salvage that cannot read the store does not advise a salvage.
func TestSalvageFailedAdvice(t *testing.T) {
	err := folder.SalvageFailed("/srv/data", fmt.Errorf("the manifest ends early: %w", store.ErrUnreadable))
	if text := err.Error(); strings.Contains(text, "holdfast salvage") || !strings.Contains(text, "put a backup") {
		t.Errorf("the advice is: %s", text)
	}
	if !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("the cause is lost: %v", err)
	}
}
