package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/store"
)

// An error of the disk or of Pebble means something to a store in a folder, and there is something
// to do about it: that is said here.

// Errors of a store, besides those of the operating system and of Pebble.
var (
	// ErrClosed: nothing can be done with a store that is closed.
	ErrClosed = errors.New("the store is closed")
	// ErrDamaged: the store does not hold what this version writes.
	ErrDamaged = fmt.Errorf("%w: damaged", store.ErrUnreadable)
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("locked")
	// ErrNoStore: the folder has other things in it.
	ErrNoStore = errors.New("this is not a store")
	// ErrEarly: this version cannot read what that build wrote.
	ErrEarly = errors.New("it was written by a build from before the first release")
)

// NoRoom returns which error of a disk that has no room err is, or 0: no space, no
// quota, a limit on the size of files.
func NoRoom(err error) syscall.Errno {
	for _, n := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, n) {
			return n
		}
	}
	return 0
}

const makeRoom = "free space on its disk, or raise its limit"

// WaitsForRoom is why commits are refused while there is no room.
func WaitsForRoom(dir string, err error) error {
	return fmt.Errorf("write to the store %s: %w; it cannot grow: %s, and what waits is written", dir, NoRoom(err),
		makeRoom)
}

// Reopens is why commits are refused after an engine has failed.
func Reopens(dir string, err error) error {
	return fmt.Errorf("write to the store %s: %w; the store is being opened again", dir, err)
}

// Unreadable wraps ErrUnreadable around what Pebble says of damage. A file that is
// missing is damage, too.
func Unreadable(err error) error {
	if err == nil || errors.Is(err, store.ErrUnreadable) ||
		!pebble.IsCorruptionError(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnreadable, Brief(err, FirstLine(err)))
}

// Guard makes errors of damage, and panics, which are Pebble's on damage that it
// has not foreseen, into ones that wrap ErrUnreadable.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", ErrDamaged, p)
		}
	}()
	return Unreadable(f())
}

// Judged says what it means that Pebble could not open the store: what the operating
// system did not refuse is what Pebble found in the files.
func Judged(err error) error {
	system := new(syscall.Errno)
	switch {
	case strings.Contains(err.Error(), "unknown format major version"):
		return fmt.Errorf("%w: %w; install a newer version", store.ErrVersionTooNew, err)
	case errors.Is(err, fs.ErrNotExist), !errors.As(err, system):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// FirstLine is an error without the stacks that Pebble's have.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Brief is err with another text.
func Brief(err error, text string) error { return brief{err, text} }

// brief is an error whose text is one line that does not name the directory.
type brief struct {
	error
	text string
}

func (b brief) Error() string { return b.text }

func (b brief) Unwrap() error { return b.error }

func inBrief(dir string, err error) error {
	return brief{
		err,
		strings.NewReplacer(fmt.Sprintf(" for DB %q", dir), "", fmt.Sprintf(" database %q", dir), "", dir+
			string(filepath.Separator), "").
			Replace(FirstLine(err)),
	}
}

// SalvageFailed says what to do about a directory of which nothing can be saved. It is not
// told to salvage it.
func SalvageFailed(dir string, err error) error {
	if !errors.Is(err, store.ErrUnreadable) && !pebble.IsCorruptionError(err) {
		return OpenFailed(dir, true, err)
	}
	return fmt.Errorf("salvage the store %s: %w: nothing could be read, and it was left as it is: put a backup in "+
		"its place, or try again with a copy of its files from a healthy disk", dir, inBrief(dir, err))
}

// OpenFailed says what to do about a directory that cannot be opened. A reader is no server,
// and looks for a store that exists.
func OpenFailed(dir string, readOnly bool, err error) error {
	const other = "or use another folder"
	advice := ""
	switch {
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("%w: it has %s open; stop it (is a server running already?) %s", store.ErrStoreLocked, dir,
			other)
	case errors.Is(err, ErrEarly):
		advice = "it was left as it is: export its threads with that build (holdfast export FOLDER --thread ID), and " +
			"import them into a new folder with this one (holdfast import)"
	case NoRoom(err) != 0:
		advice = "it cannot grow: " + makeRoom + ", " + other
	case readOnly && errors.Is(err, fs.ErrPermission):
		advice = "do this as a user who can read the folder and what is in it, such as the server's"
	case readOnly && errors.Is(err, ErrNoStore):
		advice = "name the folder of a store, as in the server's --store"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		advice = "the server's user must be able to write the folder and what is in it; change that, " + other
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		advice = "a part of this path is a file and not a folder; use another path"
	case errors.Is(err, ErrNoStore):
		advice = "it was left as it is: name a new or an empty folder"
	case errors.Is(err, store.ErrVersionTooNew):
	case errors.Is(err, store.ErrUnreadable), pebble.IsCorruptionError(err):
		advice = "it was left as it is: put a backup in its place, save what is whole with holdfast salvage, " + other
	}
	// The path is said already.
	if p := new(fs.PathError); errors.As(err, &p) && p.Path == dir {
		err = p.Err
	}
	err = inBrief(dir, err)
	if advice == "" {
		return fmt.Errorf("open the store %s: %w", dir, err)
	}
	return fmt.Errorf("open the store %s: %w: %s", dir, err, advice)
}
