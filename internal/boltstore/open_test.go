package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"

	bolt "go.etcd.io/bbolt"
)

func TestOpenLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	first := openAt(t, path)
	begun := time.Now()
	_, err := Open(path, Options{})
	if !errors.Is(err, store.ErrStoreLocked) {
		t.Fatalf("the second Open: %v, want ErrStoreLocked", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s to give up", took)
	}
	for _, want := range []string{path, "another process: it has", "stop it", "another file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the text does not say %q: %s", want, err)
		}
	}
	commitTo(t, first, "t")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, path)
}

// commitTo makes a thread with one commit of everything.
func commitTo(t *testing.T, s *Store, thread string) {
	t.Helper()
	err := s.Commit(t.Context(), &store.Commit{
		Key: store.ThreadKey{Tenant: "acme", Thread: thread}, ID: "c1", Expect: store.Position{Next: 1}, User: "alice",
		Fence: store.Fence{Epoch: 1, Nonce: "abcdefgh"}, UpdatedAt: time.Now(), State: []byte("state"), Records: [][]byte{[]byte("r")},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenModes(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(folder, "holdfast.db")
	openAt(t, path)
	for name, want := range map[string]os.FileMode{folder: os.ModeDir | 0o700, path: 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
		}
	}
}

// edit changes the file behind the store's back.
func edit(t *testing.T, path string, f func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func setFormat(format string) func(tx *bolt.Tx) error {
	return func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte("format"), []byte(format)) }
}

// refused opens the file, which must fail and leave it as it is.
func refused(t *testing.T, path string) error {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, refusal := Open(path, Options{})
	if refusal == nil {
		t.Fatal(errors.Join(errors.New("the file was opened"), s.Close()))
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("the refused file was changed")
	}
	return refusal
}

func TestOpenNewerFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	s := openAt(t, path)
	commitTo(t, s, "t")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, path, setFormat("2"))
	err := refused(t, path)
	if !errors.Is(err, store.ErrVersionTooNew) || !strings.Contains(err.Error(), "format 2") || !strings.Contains(err.Error(), "formats up to 1") {
		t.Errorf("error is %v, want ErrVersionTooNew with both versions", err)
	}
	// The refusal has let go of the file.
	edit(t, path, setFormat("1"))
	if _, err := openAt(t, path).Head(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"}); err != nil {
		t.Errorf("Head: %v", err)
	}
}

func TestOpenForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	edit(t, other, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("another program's")); return err })
	if err := refused(t, other); !strings.Contains(err.Error(), "not a Holdfast store") {
		t.Errorf("error is %v", err)
	}

	damaged := filepath.Join(dir, "damaged.db")
	if err := openAt(t, damaged).Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, damaged, setFormat("one"))
	if err := refused(t, damaged); !errors.Is(err, errDamaged) || errors.Is(err, store.ErrVersionTooNew) {
		t.Errorf("error is %v, want errDamaged", err)
	}

	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, bytes.Repeat([]byte("not a database "), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, text)
}

// TestOpenAfterCrashWhileCreating: a file that bbolt has made, but in which the
// store has written nothing yet, is a new one.
func TestOpenAfterCrashWhileCreating(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, bare := filepath.Join(dir, "empty.db"), filepath.Join(dir, "bare.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	edit(t, bare, func(*bolt.Tx) error { return nil })
	commitTo(t, openAt(t, empty), "t")
	commitTo(t, openAt(t, bare), "t")
}

// TestOpenImpossible: the error names the file, once, and says what to do.
func TestOpenImpossible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, text, torn := filepath.Join(dir, "file"), filepath.Join(dir, "notes.txt"), filepath.Join(dir, "torn.db")
	if err := openAt(t, torn).Close(); err != nil {
		t.Fatal(err)
	}
	tearMeta(t, torn)
	for path, content := range map[string]string{file: "", text: strings.Repeat("not a database ", 10_000)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		dir:                                "name a file in this folder",
		text:                               "it is not a store, or it is damaged; it was left as it is",
		torn:                               "it is not a store, or it is damaged; it was left as it is",
		filepath.Join(file, "holdfast.db"): "a part of this path is a file",
	} {
		s, err := Open(path, Options{})
		if err == nil {
			t.Errorf("%s was opened: %v", path, s.Close())
			continue
		}
		if !strings.HasPrefix(err.Error(), "open the store "+path+": ") || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("the text does not say %q, or not which file: %s", want, err)
		}
	}
}

// tearMeta destroys what both of a bbolt file's first pages begin with.
func tearMeta(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := range 2 {
		if _, err := f.WriteAt(make([]byte, 64), int64(page*os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAdvice has what no test can bring about everywhere.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const path = "/data/holdfast.db"
	for cause, want := range map[error]string{
		&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}:            "permission denied: the server's user must be able to write the file and its folder",
		&fs.PathError{Op: "open", Path: path, Err: syscall.EROFS}:             "read-only file system: the server's user must",
		&fs.PathError{Op: "mkdir", Path: "/data", Err: syscall.ENOSPC}:        "mkdir /data: no space left on device: the file cannot grow: free space on its disk, or use another file",
		fmt.Errorf("file resize error: %s", syscall.EDQUOT):                   "free space on its disk",
		&fs.PathError{Op: "open", Path: path, Err: errors.New("odd failure")}: "open /data/holdfast.db: odd failure",
	} {
		err := openFailed(path, cause)
		if !errors.Is(err, cause) && !errors.Is(err, errors.Unwrap(cause)) {
			t.Errorf("%v is lost in %v", cause, err)
		}
		if !strings.HasPrefix(err.Error(), "open the store "+path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("the text does not say %q: %s", want, err)
		}
	}
}
