package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Private is the operating system's file system, on which files and folders are made for
// their owner only: what is in them is every tenant's. Pebble would leave that to the umask.
type Private struct{ vfs.FS }

// The modes of what is made.
const (
	FileMode   fs.FileMode = 0o600
	FolderMode fs.FileMode = 0o700
)

// Create implements [vfs.FS]. Like the one that it replaces, it makes a new file where there
// is one, and does not write into that, which may be a backup's, too.
func (p Private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	for {
		err := newFile(name)
		if err == nil {
			return p.FS.OpenReadWrite(name, category)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := p.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// newFile makes an empty file.
func newFile(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return err
	}
	return f.Close()
}

// OpenReadWrite implements [vfs.FS].
func (p Private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := newFile(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return p.FS.OpenReadWrite(name, category, opts...)
}

// MkdirAll implements [vfs.FS].
func (p Private) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, FolderMode) }

// Unwrap implements [vfs.FS].
func (p Private) Unwrap() vfs.FS { return p.FS }

// MakePrivate takes the rights of others off the files of a folder, which a copy may have made
// by the umask. The folder's own rights are its operator's. Other users' files stay as they
// are.
func MakePrivate(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&^FileMode == 0 {
			continue // it may be gone
		}
		_ = os.Chmod(filepath.Join(dir, e.Name()), info.Mode().Perm()&FileMode)
	}
	return nil
}
