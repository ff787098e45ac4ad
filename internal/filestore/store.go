// Package filestore keeps threads in a directory, with Pebble: a log that every
// commit is appended and synced to, and sorted tables that the log is folded into.
// Every commit is on disk before it returns, and before anybody can read it;
// commits that arrive together share one sync.
//
// Trouble with the disk never ends the process. While there is no room, commits are refused
// and reading goes on, and so it is while the engine is opened again after a write that
// failed; see keeper.go. Damage on disk is an error that wraps [store.ErrUnreadable] for those
// who read it, and for nobody else.
//
// The files by what they hold: commit.go, read.go, directory.go, presence.go,
// notify.go, ledger.go and durability.go have the methods of the roles of
// [store.Store]; operations.go is what a commit and its like have checked,
// committer.go the one goroutine that writes them, write.go what it writes for a
// commit, and steps.go how it writes a very large one; keeper.go keeps an engine there
// for it; engine.go, events.go and scheduler.go are what is known about Pebble;
// layout.go is the directory, and keys.go lists every key. Package disk keeps trouble
// with the disk away from Pebble, inventory notices missing and damaged files, and
// trouble says what to do about an error.
package filestore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

var _ store.Store = (*Store)(nil)

// Store is a store in one directory. All its methods may be called concurrently.
type Store struct {
	*site
	codec     *frame.Codec
	lock      io.Closer
	place     *place
	readOnly  bool
	lost      *loss // nil: nothing
	leases    leases
	hints     hints
	waiters   storekit.Waiters
	committer *committer
	closeOnce sync.Once
	closeErr  error
}

// Open opens the store in the directory dir, and makes the directory if it is not
// there. The error wraps [store.ErrStoreLocked] if another process has the store
// open, [store.ErrVersionTooNew] if a newer version of Holdfast wrote it, and
// [store.ErrUnreadable] if it is damaged; nothing is changed then. A store whose
// disk has no room is opened, but refuses commits until it has. The caller must
// call Close.
func Open(dir string, opts Options) (*Store, error) {
	return openOn(folder.Private{FS: vfs.Default}, dir, opts)
}

func openOn(fs vfs.FS, dir string, opts Options) (*Store, error) {
	codec, err := frame.New()
	if err != nil {
		return nil, err
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	lock, lost, err := prepare(dir, opts)
	if err != nil {
		return nil, folder.OpenFailed(dir, opts.ReadOnly, err)
	}
	if lost != nil && lost.log != nil {
		fs = lost.log.Cut(fs)
	}
	return begun(fs, dir, codec, lock, lost, opts)
}

// begun opens a folder that was prepared.
func begun(fs vfs.FS, dir string, codec *frame.Codec, lock io.Closer, lost *loss, opts Options) (_ *Store, err error) {
	s := &Store{
		site:     newSite(dir, fs, opts),
		codec:    codec,
		lock:     lock,
		readOnly: opts.ReadOnly,
		lost:     lost,
	}
	if !opts.ReadOnly {
		err = folder.MakePrivate(dir)
	}
	if err == nil {
		s.place, err = openPlace(dir, lock, opts.Log)
	}
	if err == nil {
		s.committer = newCommitter(s.site, codec, s.place, &s.waiters, opts.ReadOnly)
		if err = s.committer.begin(); err != nil {
			err = errors.Join(err, s.place.mark.Close())
		}
	}
	if err != nil && lost != nil {
		err = errors.Join(lost.err, err) // which is why
	}
	if err != nil {
		s.cache.Unref()
		return nil, folder.OpenFailed(dir, opts.ReadOnly, errors.Join(err, lock.Close()))
	}
	return s, nil
}

// prepare makes the directory, locks it, and checks that it is a store, or can become one.
// Pebble has not seen it then. A folder that is no store of this version is refused before
// there is a lock in it. A store that is only read may have lost something.
func prepare(dir string, opts Options) (lock io.Closer, lost *loss, err error) {
	if opts.ReadOnly {
		if err := checkThere(dir); err != nil {
			return nil, nil, err
		}
	} else if err := makeFolder(dir); err != nil {
		return nil, nil, err
	}
	if _, err := checkFormat(dir); err != nil {
		return nil, nil, err
	}
	if opts.LockTimeout == 0 {
		opts.LockTimeout = time.Second
	}
	if lock, err = lockFor(dir, !opts.ReadOnly, opts.LockTimeout); err != nil {
		return nil, nil, err
	}
	format, err := checkFormat(dir) // another process may have made it a store
	if err == nil && format > 0 {
		lost, err = check(dir, opts)
	}
	if err == nil && format < Format && !opts.ReadOnly {
		err = writeFormat(dir)
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return lock, lost, nil
}

// loss is what a damaged store has lost for those who read what is whole.
type loss struct {
	err error
	log *folder.LogDamage // if it is the end of its log
}

// check compares the files of a store with what they were. A store that is only read may
// have lost some of them.
func check(dir string, opts Options) (*loss, error) {
	if opts.unchecked {
		return nil, nil
	}
	err := folder.Check(dir)
	lost := &loss{err: err}
	var amiss *folder.Amiss
	if opts.ReadOnly && (errors.As(err, &lost.log) || errors.As(err, &amiss)) {
		return lost, nil
	}
	return nil, err
}

// Close implements [store.Store]. The current write is finished first, unless there is no room
// for it; waiting ones are refused.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		err := s.committer.stop()
		if errors.Is(err, errLeft) {
			s.log.Warn("the store was closed with writes that could not be finished; everything that was "+
				"acknowledged is on disk", "store", s.dir)
			err = nil
		}
		s.cache.Unref()
		if err := errors.Join(err, s.place.mark.Close(), s.lock.Close()); err != nil {
			s.closeErr = fmt.Errorf("close the store %s: %w", s.dir, err)
		}
	})
	return s.closeErr
}
