package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// Backups: a copy of a store that another Open takes for a store. The file that says so
// is written last, so a copy that was not finished is none.

var _ store.Backuper = (*Store)(nil)

// serverFile is where a server that has the store open says how it can be asked for
// something; see package operator. It is no part of the store.
const serverFile = "SERVER"

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

// Backup implements [store.Backuper]. On the same file system the tables, which never
// change, are linked and not copied.
func (s *Store) Backup(ctx context.Context, dir string) error {
	if err := orClosed(s, cmp.Or(s.place.canWrite(s.committer.refused.Load()), ctx.Err())); err != nil {
		return err
	}
	if err := checkNew(dir); err != nil {
		return err
	}
	e := s.committer.engine.Load()
	done := make(chan error, 1)
	go func() {
		err := folder.Guard(func() error { return e.db.Checkpoint(dir) }) // leaves nothing if it fails
		if err == nil {
			err = finishBackup(ctx, dir)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("back the store %s up to %s: %w", s.dir, dir, orClosed(s, err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped waiting for the backup in %s, which is not finished: %w", dir, ctx.Err())
	}
}

// orClosed returns err, unless the store was closed: what fails then may look like damage.
func orClosed(s *Store, err error) error {
	select {
	case <-s.committer.closing:
		return folder.ErrClosed
	default:
		return err
	}
}

// Copy backs up the store in a directory that no server has open; the error wraps
// [store.ErrStoreLocked] if one has.
func Copy(ctx context.Context, from, dir string) error {
	if err := checkNew(dir); err != nil {
		return err
	}
	lock, _, err := prepare(from, Options{ReadOnly: true, LockTimeout: time.Millisecond})
	if err != nil {
		return folder.OpenFailed(from, true, err)
	}
	if err = copyFiles(ctx, from, dir); err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	} else {
		err = finishBackup(ctx, dir)
	}
	if err != nil {
		err = fmt.Errorf("back the store %s up to %s: %w", from, dir, err)
	}
	return errors.Join(err, lock.Close())
}

// checkNew checks that a backup's folder is not there, and can be made. The error wraps
// [fs.ErrExist] if it is there, and only then: the text has all there is to say about a
// folder that cannot be made.
func checkNew(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return &fs.PathError{Op: "back up to", Path: dir, Err: fs.ErrExist}
	}
	err := os.MkdirAll(dir, folder.FolderMode)
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil {
		return fmt.Errorf("back up to %s: the folder cannot be made: %v; name a path where the user of this "+
			"process can make a folder", dir, err)
	}
	return nil
}

// copyFiles copies the files of a store, except those that are written last or belong to
// a process.
func copyFiles(ctx context.Context, from, dir string) error {
	if err := os.MkdirAll(dir, folder.FolderMode); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() || name == formatFile || name == lockFileName || name == serverFile {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyFile(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, folder.FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// finishBackup makes a copy a store, and reads it. If that fails, it removes the copy.
func finishBackup(ctx context.Context, dir string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := folder.Complete(folder.Private{FS: vfs.Default}, dir); err != nil {
		return err
	}
	if err := writeFormat(dir); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	_, _, err = s.Walk(ctx, "", 1)
	if err == nil && s.lost != nil {
		err = s.lost.err
	}
	return errors.Join(err, s.Close())
}
