// Package boltstore keeps threads in one file, with bbolt. Every commit is on
// disk before it returns; commits that arrive together share one sync.
package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/wake"
	"github.com/holdfast-agents/holdfast/store"

	bolt "go.etcd.io/bbolt"
)

var _ store.Store = (*Store)(nil)

// Format is the version of the file's layout. A file with a larger one is
// refused.
const Format = 1

// Options are the choices of [Open]; the zero value is right for a server.
type Options struct {
	// LockTimeout is how long to wait for another process to let go of the file;
	// 0 means one second.
	LockTimeout time.Duration
}

// Store is a store in one file. All its methods may be called concurrently.
type Store struct {
	db    *bolt.DB
	path  string
	codec *frame.Codec
	presence
	wake.List

	requests  chan *request // to the committer, unbuffered: see submit
	closing   chan struct{}
	stopped   chan struct{} // closed when the committer has ended
	closeOnce sync.Once
	closeErr  error
}

// Open opens the store in the file at path, and makes the file and its folder
// if they are not there. The error wraps [store.ErrStoreLocked] if another
// process has the file open, and [store.ErrVersionTooNew] if a newer version
// of Holdfast wrote it; the file is not touched then. The caller must call
// Close.
func Open(path string, opts Options) (*Store, error) {
	codec, err := frame.New()
	if err != nil {
		return nil, err
	}
	db, err := openFile(path, opts)
	if err != nil {
		return nil, err
	}
	if err := prepare(db); err != nil {
		return nil, openFailed(path, errors.Join(err, db.Close()))
	}
	s := &Store{
		db: db, path: path, codec: codec,
		requests: make(chan *request),
		closing:  make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	go s.committer()
	return s, nil
}

func openFile(path string, opts Options) (*bolt.DB, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, openFailed(path, fmt.Errorf("make its folder: %w", err))
	}
	timeout := opts.LockTimeout
	if timeout == 0 {
		timeout = time.Second
	}
	_, statErr := os.Stat(path)
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      timeout,
		FreelistType: bolt.FreelistMapType,
		// The list of free pages can be as large as the data. Finding them again
		// when opening is cheaper than writing the list in every commit.
		NoFreelistSync: true,
	})
	if err != nil {
		return nil, openFailed(path, err)
	}
	if errors.Is(statErr, os.ErrNotExist) {
		if err := syncFolder(folder); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// syncFolder makes the name of a new file as durable as its content will be.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil // it cannot sync folders, and does not need to
	}
	f, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("sync the folder of the store: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the folder of the store: %w", err)
	}
	return nil
}

// prepare checks the format before anything is written, and makes the buckets
// of a new file.
func prepare(db *bolt.DB) error {
	isNew := false
	err := db.View(func(tx *bolt.Tx) error {
		if first, _ := tx.Cursor().First(); first == nil {
			isNew = true
			return nil
		}
		return checkFormat(tx)
	})
	if err != nil {
		return err
	}
	if !isNew {
		return addBuckets(db)
	}
	return db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{bucketNames, bucketData, bucketChunks, bucketOwned, bucketActive, bucketChildren, bucketLedger} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return fmt.Errorf("make bucket %s: %w", name, err)
			}
		}
		meta, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return fmt.Errorf("make bucket %s: %w", bucketMeta, err)
		}
		return meta.Put([]byte("format"), []byte(strconv.Itoa(Format)))
	})
}

// addBuckets makes what files of earlier versions lack.
func addBuckets(db *bolt.DB) error {
	there := false
	err := db.View(func(tx *bolt.Tx) error {
		there = tx.Bucket([]byte(bucketChildren)) != nil && tx.Bucket([]byte(bucketLedger)) != nil
		return nil
	})
	if err != nil || there {
		return err
	}
	return db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(bucketChildren))
		_, err2 := tx.CreateBucketIfNotExists([]byte(bucketLedger))
		return errors.Join(err, err2)
	})
}

func checkFormat(tx *bolt.Tx) error {
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		return errors.New("this bbolt file is not a Holdfast store; use another file")
	}
	text := string(meta.Get([]byte("format")))
	format, err := strconv.Atoi(text)
	if err != nil || format < 1 {
		return fmt.Errorf("the store's format is %q: %w", text, errDamaged)
	}
	if format > Format {
		return fmt.Errorf("the store has format %d, this version of Holdfast reads formats up to %d: %w; install a newer version", format, Format, store.ErrVersionTooNew)
	}
	return nil
}

// Close implements [store.Store]. What is being written is finished first;
// what waits to be written is refused.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.stopped
		if err := s.db.Close(); err != nil {
			s.closeErr = fmt.Errorf("close the store %s: %w", s.path, err)
		}
	})
	return s.closeErr
}
