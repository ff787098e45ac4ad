package boltstore

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/holdfast-agents/holdfast/store"

	bolterrors "go.etcd.io/bbolt/errors"
)

// full are the errors of a file that cannot grow: no space, no quota, a limit on
// the size of files.
var full = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// noRoom returns which of them err is, or 0. bbolt keeps only the text of some
// causes.
func noRoom(err error) syscall.Errno {
	for _, n := range full {
		if errors.Is(err, n) || strings.HasSuffix(err.Error(), ": "+n.Error()) {
			return n
		}
	}
	return 0
}

// writeFailed is why a batch was not written.
func (s *Store) writeFailed(err error) error {
	if n := noRoom(err); n != 0 {
		return fmt.Errorf("write to the store %s: %w; the file cannot grow: free space on its disk, or raise its limit, and what waits is written", s.path, n)
	}
	return fmt.Errorf("write to the store %s: %w", s.path, err)
}

// openFailed says what to do about a file that cannot be opened.
func openFailed(path string, err error) error {
	const other = "or use another file"
	advice := ""
	switch n := noRoom(err); {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: it has %s open; stop it (is a server running already?) %s", store.ErrStoreLocked, path, other)
	case n != 0:
		advice = "the file cannot grow: free space on its disk, " + other
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		advice = "the server's user must be able to write the file and its folder; change that, " + other
	case errors.Is(err, syscall.EISDIR):
		advice = "name a file in this folder"
	case errors.Is(err, syscall.ENOTDIR):
		advice = "a part of this path is a file and not a folder; use another path"
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		advice = "it is not a store, or it is damaged; it was left as it is: put a backup in its place, " + other
	default:
		return fmt.Errorf("open the store %s: %w", path, err)
	}
	// The path is said already.
	if p := new(fs.PathError); errors.As(err, &p) && p.Path == path {
		err = p.Err
	}
	return fmt.Errorf("open the store %s: %w: %s", path, err, advice)
}
