package folder

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-agents/holdfast/internal/frame"
)

// Keeping the inventory: what an engine does to its files is followed as it goes through
// [Disk], and written down in the order that inventory.go asks for.

// Tracker follows one engine. A nil Tracker follows nothing: it is that of an engine that
// only reads.
type Tracker struct {
	disk *Disk
	fs   vfs.FS
	dir  string
	// spared are tables that are not removed: see Stock.
	spared map[string]bool

	mu    sync.Mutex
	known *Inventory
	told  uint64   // is the inventory's next, as it was written last
	fresh []uint64 // logs whose names may not be durable yet

	synced syncedFile
}

// follow has the inventory kept of what an engine does to the files of the folder dir, from
// what there is on.
func (s *Stock) follow(disk *Disk, fs vfs.FS, dir string) *Tracker {
	t := &Tracker{
		disk:   disk,
		fs:     fs,
		dir:    dir,
		known:  s.inventory,
		told:   s.inventory.next,
		spared: map[string]bool{},
	}
	for _, name := range s.Leftover {
		t.spared[name] = true
	}
	return t
}

// Tracked is a file that is being written.
type Tracked struct {
	kind     string
	number   uint64
	length   atomic.Int64
	manifest manifest // what was written to one
	pending  []byte   // of a manifest, what its copy does not have yet
}

// Length is how much was written; 0 for what is not tracked.
func (f *Tracked) Length() int64 {
	if f == nil {
		return 0
	}
	return f.length.Load()
}

// Begin is called before a file is made.
func (t *Tracker) Begin(name string) *Tracked {
	kind, number := kindOfFile(name)
	if t == nil || kind == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.next = max(t.known.next, number+1)
	switch kind {
	case tableFile:
		t.known.tables[number] = unused
		if number < t.told {
			t.write()
		}
	case logFile:
		t.fresh = append(t.fresh, number)
	}
	return &Tracked{kind: kind, number: number}
}

// Named is called when the names in the folder are durable.
func (t *Tracker) Named() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.fresh) == 0 {
		return
	}
	for _, log := range t.fresh {
		t.known.logs[log] = 0
	}
	t.fresh = nil
	t.write()
}

// Wrote is called when something was written to a file.
func (t *Tracker) Wrote(f *Tracked, b []byte) {
	if f == nil {
		return
	}
	f.length.Add(int64(len(b)))
	if f.kind == manifestFile {
		f.pending = append(f.pending, b...)
		if err := f.manifest.take(b); err != nil {
			t.disk.Fail(err) // it is not what this version knows, so nothing could be checked
		}
	}
}

// Durable is called when so much of a file was synced.
func (t *Tracker) Durable(f *Tracked, length int64) {
	switch {
	case f == nil:
	case f.kind == logFile:
		t.synced.write(t, f.number, length)
	case f.kind == manifestFile:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.disk.Change(func() error {
			return writeCopy(t.fs, t.dir, f.number, f.manifest.length-int64(len(f.pending)), f.pending)
		})
		f.pending = nil
		t.known.follow(f.number, &f.manifest)
		t.write()
	}
}

// Closed is called when a file was closed.
func (t *Tracker) Closed(f *Tracked) {
	if f == nil || f.kind != logFile {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.logs[f.number] = f.length.Load()
}

// Removed is called when a file is no longer there.
func (t *Tracker) Removed(name string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch kind, number := kindOfFile(name); kind {
	case tableFile:
		delete(t.known.tables, number)
	case logFile:
		delete(t.known.logs, number)
	case manifestFile:
		delete(t.known.manifests, number)
		_ = t.disk.Try(func() error { return t.fs.Remove(filepath.Join(t.dir, copyName(number))) })
	}
}

// Spares reports whether a file is not to be removed.
func (t *Tracker) Spares(name string) bool { return t != nil && t.spared[filepath.Base(name)] }

// write writes the inventory. The caller has the lock.
func (t *Tracker) write() {
	t.disk.Change(func() error { return t.known.write(t.fs, t.dir) })
	t.told = t.known.next
}

// Close lets go of what the Tracker has open.
func (t *Tracker) Close() {
	if t != nil {
		t.synced.close()
	}
}

// SyncedFile is the name of the file that says how much of the newest log was synced. It is
// written after each commit and not synced, which would cost as much as the commit: so it
// outlives the process, and after a power failure it may say less than there is.
const SyncedFile = "SYNCED"

// syncedFile is that file: a log's number, a length, and their checksum.
type syncedFile struct {
	mu   sync.Mutex
	file vfs.File
	off  bool // it cannot be written
}

const syncedSize = 20

func (s *syncedFile) write(t *Tracker, log uint64, length int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		return
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, syncedSize), log)
	b = binary.LittleEndian.AppendUint64(b, uint64(length))
	b = binary.LittleEndian.AppendUint32(b, frame.Sum(b))
	err := t.disk.Try(func() (err error) {
		if s.file == nil {
			s.file, err = t.fs.OpenReadWrite(filepath.Join(t.dir, SyncedFile), vfs.WriteCategoryUnspecified)
		}
		if err == nil {
			_, err = s.file.WriteAt(b, 0)
		}
		return err
	})
	s.off = err != nil // it only says less then than it could
}

func (s *syncedFile) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = errors.Join(s.file.Sync(), s.file.Close())
		s.file = nil
	}
}

// readSynced reads what the file says of a log; 0 if it says nothing.
func readSynced(dir string, log uint64) int64 {
	if last, length := lastSynced(dir); last == log {
		return length
	}
	return 0
}

// lastSynced reads of which log the file says how far it was synced; 0, 0 if it says nothing.
func lastSynced(dir string) (log uint64, length int64) {
	b, err := os.ReadFile(filepath.Join(dir, SyncedFile))
	if err != nil || len(b) != syncedSize || binary.LittleEndian.Uint32(b[16:]) != frame.Sum(b[:16]) {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))
}
