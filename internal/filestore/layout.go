package filestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// The directory: what is in it besides Pebble's files, who may use it, and whether it is a
// store at all. All of this is settled before Pebble sees it.

// Format is the version of the layout of keys and values. A store with a larger one is refused, and
// one with a smaller one gets this one when it is opened for writing. Versions that know only layout 1
// do not keep the index, so they must not write to a store whose index is complete.
const Format = 2

// The files of the directory that are not Pebble's.
const (
	// formatFile says that the directory is a store, and the version of its layout: the
	// opening process knows this before Pebble changes anything.
	formatFile = "FORMAT"
	// lockFileName is locked while a process has the store open.
	lockFileName = "LOCK"
)

// The word before the version in the format file.
const (
	formatWord = "holdfast-data"
	// earlyWord is that of builds from before the first release.
	earlyWord = "holdfast"
)

// makeFolder makes the directory if it is not there.
func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, folder.FolderMode); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil // it cannot sync folders, and does not need to
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lockFor locks the directory for this process, and waits for another one to let
// go of it.
func lockFor(dir string, alone bool, wait time.Duration) (io.Closer, error) {
	name := filepath.Join(dir, lockFileName)
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		lock, taken, err := lockFile(name, alone)
		switch {
		case err == nil:
			return lock, nil
		case !alone && errors.Is(err, fs.ErrNotExist):
			return io.NopCloser(nil), nil // nobody has ever opened it for writing
		case !taken:
			return nil, err
		case time.Now().After(deadline):
			return nil, folder.ErrLocked
		}
	}
}

// checkFormat reads the version of a store's layout. It is 0 if the directory has no store, and could
// have one. It needs no lock: the file is only ever replaced as a whole, by a later version.
func checkFormat(dir string) (format int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, checkVacant(dir)
	}
	if err != nil {
		return 0, err
	}
	word, number, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	format, err = strconv.Atoi(number)
	switch {
	case word == earlyWord && err == nil && format > 0:
		return 0, folder.ErrEarly
	case word != formatWord || err != nil || format < 1:
		return 0, fmt.Errorf("its file %s says %q: %w", formatFile, text, folder.ErrDamaged)
	case format > Format:
		return 0, fmt.Errorf("it has format %d, this version of Holdfast reads formats up to %d: %w; "+
			"install a newer version", format, Format, store.ErrVersionTooNew)
	}
	return format, nil
}

// checkThere: a directory that is only read must be a store already.
func checkThere(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has no file %s: %w", formatFile, folder.ErrNoStore)
	}
	return err
}

// checkVacant: a directory that has other things in it is left alone.
func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == formatFile }) {
		return nil // another process, which has the lock, has just made it a store
	}
	for _, e := range entries {
		name := e.Name()
		if name != lockFileName && name != "lost+found" && !strings.HasPrefix(name, ".") {
			return fmt.Errorf("it has no file %s, but has %s: %w", formatFile, name, folder.ErrNoStore)
		}
	}
	return nil
}

// writeFormat makes the directory a store of this version's layout.
func writeFormat(dir string) error {
	name := filepath.Join(dir, formatFile)
	temporary := filepath.Join(dir, "."+formatFile)
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, folder.FileMode)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d\n", formatWord, Format)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	return syncFolder(dir)
}
