package filestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-agents/holdfast/store"
)

// place notices that the store's folder was removed, or that another one has taken its
// place, and the same of the lock in it. The engine would not: it goes on with the files that
// it has open, and what it writes there is gone when it closes them; and without the lock,
// another server may write to the same files.
type place struct {
	dir string
	log *slog.Logger
	// mark is the format file, and lock the one that is locked; nil if it cannot be removed
	// while it is. While they are open, no other file has their numbers.
	mark, lock *os.File
	// lost is why commits are refused; nil while the folder is there.
	lost atomic.Pointer[error]
}

func openPlace(dir string, lock io.Closer, log *slog.Logger) (*place, error) {
	mark, err := os.Open(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		mark, err = os.Open(dir) // of a store that is salvaged
	}
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, log: log, mark: mark}
	p.lock, _ = lock.(*os.File)
	return p, nil
}

// look looks whether the folder and its lock are there, and returns why commits are refused
// if they are not. A folder that is back, because it had only been moved, is as good as
// before.
func (p *place) look() error {
	text := ""
	folder, knownFolder := gone(p.mark)
	lock, knownLock := gone(p.lock)
	switch {
	case folder:
		text = "its folder was removed or replaced while the server runs, so what is written would be lost: stop the " +
			"server, put the folder or a backup in its place, and start it again"
	case lock:
		text = "its file " + lockFileName +
			" was removed or replaced while the server runs, so another server may write to the same files: stop all " +
			"servers that have the store open, and start one again"
	case knownFolder && knownLock:
		if p.lost.Swap(nil) != nil {
			p.log.Info("the store's folder is back", "store", p.dir)
		}
		return nil
	default:
		return nil
	}
	err := fmt.Errorf("write to the store %s: %w: %s", p.dir, store.ErrRefused, text)
	if p.lost.Swap(&err) == nil {
		p.log.Error("the store's folder or its lock was removed or replaced: commits are refused, and the "+
			"newest ones may be lost",
			"store", p.dir, "error", err)
	}
	return err
}

// gone reports whether a file that is open is no longer there under its name, and whether
// that can be told.
func gone(f *os.File) (is, known bool) {
	if f == nil {
		return false, true
	}
	there, err := os.Stat(f.Name())
	was, err2 := f.Stat()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return true, true
	case err != nil || err2 != nil:
		return false, false
	}
	return !os.SameFile(there, was), true
}

// why returns why commits are refused, as far as is known: refused is another reason, or
// nil.
func (p *place) why(refused *error) error {
	if lost := p.lost.Load(); lost != nil {
		return *lost
	}
	if refused != nil {
		return *refused
	}
	return nil
}

// canWrite looks, and returns why no commit is written: refused is another reason, or nil.
func (p *place) canWrite(refused *error) error {
	if err := p.look(); err != nil {
		return err
	}
	return p.why(refused)
}
