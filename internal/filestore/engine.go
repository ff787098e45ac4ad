package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
)

// Everything about Pebble: how it is opened, written, read and closed.

// The memory that Pebble may use, in bytes. The cache is what is left of its size
// when the log's part of it is taken off.
const (
	cacheSize = 16<<20 + memTables*memTableSize
	// memTableSize is how large the part of the log that is not in tables yet may
	// become, about, and memTables how many of them there may be.
	memTableSize = 8 << 20
	memTables    = 4
	// openFiles is how many files may be open at a time.
	openFiles = 256
)

// firstPause is how long to wait before an engine is opened again, at first.
const firstPause = 100 * time.Millisecond

// engine is Pebble, opened once. A batch can be read as soon as Pebble has it in memory, which
// is before it is synced; so readers get a snapshot from after the last sync.
type engine struct {
	db       *pebble.DB
	disk     *folder.Disk
	merges   *scheduler
	readOnly bool

	mu      sync.Mutex
	shown   *shown // nil when the engine is retired
	readers sync.WaitGroup
	old     []*shown // to be closed, by a goroutine if there are any
	closing bool     // it runs
	olds    sync.WaitGroup
}

// shown is a snapshot that readers see. The engine holds it while it is the newest.
type shown struct {
	*pebble.Snapshot
	holders int // under the engine's lock
}

// site is where engines work, and what they share.
type site struct {
	dir      string
	fs       vfs.FS
	cache    *pebble.Cache
	memTable uint64 // how large one may become
	blind    bool   // the files are not compared with their inventory
	log      *slog.Logger
	damage   damage
	pause    time.Duration // before an engine is opened again, at first
}

func newSite(dir string, fs vfs.FS, opts Options) *site {
	return &site{
		dir:      dir,
		fs:       fs,
		cache:    pebble.NewCache(cacheSize),
		memTable: cmp.Or(opts.memTable, memTableSize),
		blind:    opts.unchecked,
		log:      opts.Log,
		pause:    firstPause,
	}
}

// opening is an engine that is being opened.
type opening struct {
	disk *folder.Disk
	done chan struct{} // closed when it is open, or is not going to be
	// engine and err are for after done; one of them is nil.
	engine *engine
	err    error
}

// open begins to open an engine.
func (s *site) open(readOnly bool) *opening {
	o := &opening{disk: folder.NewDisk(s.fs, s.dir), done: make(chan struct{})}
	merges := newScheduler()
	go func() {
		var db *pebble.DB
		err := s.follow(o.disk, readOnly)
		if err == nil {
			db, err = openPebble(s.options(o.disk, merges, readOnly), s.dir)
		}
		if failure := o.disk.Failure(); failure != nil {
			err = failure
		}
		if err == nil {
			o.engine = &engine{db: db, disk: o.disk, merges: merges, readOnly: readOnly}
			o.engine.show()
		}
		if o.err = err; err != nil {
			o.disk.Close()
		}
		close(o.done)
	}()
	return o
}

// follow has the inventory kept, from what there is on.
func (s *site) follow(d *folder.Disk, readOnly bool) error {
	if readOnly || s.blind {
		return nil
	}
	stock, err := folder.TakeStock(s.dir)
	if err != nil {
		return err
	}
	d.Follow(stock)
	if len(stock.Leftover) > 0 {
		s.log.Warn("the store has tables that are in no use: they stay until it is started again, in case threads "+
			"are missing; see: holdfast salvage",
			"store", s.dir, "tables", stock.Leftover)
	}
	return nil
}

func (s *site) options(d *folder.Disk, merges *scheduler, readOnly bool) *pebble.Options {
	r := reporter{
		log:    s.log,
		dir:    s.dir,
		disk:   d,
		damage: &s.damage,
		merges: merges,
	}
	opts := &pebble.Options{
		FS:                          d,
		ReadOnly:                    readOnly,
		ErrorIfNotExists:            readOnly,
		DisableConsistencyCheck:     readOnly, // what is whole can be read
		Cache:                       s.cache,
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		MemTableSize:                s.memTable,
		MemTableStopWritesThreshold: memTables,
		MaxOpenFiles:                openFiles,
		Logger:                      r,
		EventListener:               r.listener(),
		// Commits never wait for tables to be merged. Otherwise a damaged table, which
		// cannot be merged, would end all commits.
		L0StopWritesThreshold: math.MaxInt32,
	}
	opts.Experimental.CompactionScheduler = merges
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return opts
}

func openPebble(opts *pebble.Options, dir string) (db *pebble.DB, err error) {
	err = folder.Guard(func() (err error) {
		db, err = pebble.Open(dir, opts)
		return err
	})
	return db, err
}

func (e *engine) newBatch() *pebble.Batch { return e.db.NewIndexedBatch() }

// apply writes a batch, syncs it, and shows it to readers. Only one goroutine may
// call it. It may never return: see [disk].
func (e *engine) apply(b *pebble.Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.disk.Fail(fmt.Errorf("panic in the store's engine: %v", p))
			err = e.disk.Failure()
		}
	}()
	if err := e.db.Apply(b, pebble.Sync); err != nil {
		return err
	}
	// An error of the commit itself goes to Fatalf.
	if err := e.disk.Failure(); err != nil {
		return err
	}
	e.show()
	return nil
}

// show gives readers what is there now.
func (e *engine) show() {
	next := &shown{Snapshot: e.db.NewSnapshot(), holders: 1}
	e.mu.Lock()
	last := e.shown
	e.shown = next
	e.mu.Unlock()
	if last != nil {
		e.drop(last)
	}
}

// drop lets go of a snapshot. Closing it may wait for a merge, which may wait for
// room: neither readers nor commits may.
func (e *engine) drop(s *shown) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.holders--
	if s.holders > 0 {
		return
	}
	e.old = append(e.old, s)
	e.olds.Add(1)
	if !e.closing {
		e.closing = true
		go e.closeOld()
	}
}

func (e *engine) closeOld() {
	for {
		e.mu.Lock()
		old := e.old
		e.old = nil
		e.closing = len(old) > 0
		e.mu.Unlock()
		if len(old) == 0 {
			return
		}
		for _, s := range old {
			_ = s.Close() // it only forgets
			e.olds.Done()
		}
	}
}

// read calls f with what commits have made durable. f copies what it returns.
func (e *engine) read(f func(pebble.Reader) error) error {
	e.mu.Lock()
	s := e.shown
	if s == nil {
		e.mu.Unlock()
		return folder.ErrClosed
	}
	s.holders++
	e.readers.Add(1)
	e.mu.Unlock()
	defer func() {
		e.drop(s)
		e.readers.Done()
	}()
	return folder.Guard(func() error { return f(s) })
}

// retire ends reading, and waits for those who read.
func (e *engine) retire() {
	e.mu.Lock()
	s := e.shown
	e.shown = nil
	e.mu.Unlock()
	if s == nil {
		return
	}
	e.drop(s)
	e.readers.Wait()
}

// close waits for readers, and for the writes of the engine itself. If one of them
// waits for room, or the engine has failed, it is left behind: what was
// acknowledged is on disk, and nothing else is written.
func (e *engine) close() error {
	e.retire()
	if e.disk.Failure() != nil {
		e.disk.Leave()
		return errLeft
	}
	closed := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				closed <- fmt.Errorf("panic in the store's engine: %v", p)
			}
		}()
		e.olds.Wait()
		err := e.db.Close()
		e.disk.Close()
		closed <- err
	}()
	full, _ := e.disk.Full()
	select {
	case err := <-closed:
		return err
	case <-e.disk.Failed():
	case <-full:
	}
	e.disk.Leave()
	return errLeft
}

// errLeft: an engine could not be closed.
var errLeft = errors.New("the engine was left behind")
