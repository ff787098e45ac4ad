package folder

import (
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Where Pebble meets the disk, trouble with it is kept away from Pebble.

// Disk is the file system as one engine sees it. Where Pebble cannot write, it
// ends the process or is of no use afterwards. So no change of the directory ever
// fails for it:
//
//   - Where there is no room, the change waits inside the call until there is.
//   - After any other failure the engine has failed: the call never returns, nor
//     does any later one, and the store opens another engine.
//
// Reading and removing may fail, and so may changes elsewhere: Pebble can live
// with that. A sync that finds no room is a failure like any other, because
// nobody knows which of the bytes that it was for will still be written.
type Disk struct {
	vfs.FS
	dir     string
	tracker *Tracker // nil if the engine only reads

	// changes is read-locked by every change, so that leave can wait for those
	// that are under way.
	changes sync.RWMutex
	left    bool          // under changes
	wakes   chan struct{} // closed by leave

	mu      sync.Mutex
	waiting int           // changes that wait for room
	noRoom  error         // why they do
	full    chan struct{} // closed while there are any
	err     error         // why the engine has failed
	failed  chan struct{} // closed then
}

// roomEvery is how often a change that waits for room is tried again.
const roomEvery = 100 * time.Millisecond

// NewDisk is the file system fs for an engine in the folder dir.
func NewDisk(fs vfs.FS, dir string) *Disk {
	return &Disk{
		FS:     fs,
		dir:    filepath.Clean(dir),
		wakes:  make(chan struct{}),
		full:   make(chan struct{}),
		failed: make(chan struct{}),
	}
}

// Change makes a change of the directory. It returns when it is made.
func (d *Disk) Change(f func() error) {
	err := d.Try(f)
	if NoRoom(err) != 0 {
		d.awaitRoom(err)
		for NoRoom(err) != 0 {
			select {
			case <-time.After(roomEvery):
			case <-d.wakes:
			}
			err = d.Try(f)
		}
		d.foundRoom()
	}
	if err != nil {
		d.Fail(err)
		park()
	}
}

// sync makes durable what was changed. It does not wait for room.
func (d *Disk) sync(f func() error) {
	if err := d.Try(f); err != nil {
		d.Fail(err)
		park()
	}
}

// Try makes a change that may fail.
func (d *Disk) Try(f func() error) error {
	d.changes.RLock()
	if d.left {
		d.changes.RUnlock()
		park()
	}
	defer d.changes.RUnlock()
	return f()
}

// park never returns. The caller that made the change keeps its locks, but it is in none of
// Pebble's locks that a reader needs: Pebble writes in them only while it opens or closes.
func park() { select {} }

func (d *Disk) awaitRoom(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noRoom = err
	d.waiting++
	if d.waiting == 1 {
		close(d.full)
	}
}

func (d *Disk) foundRoom() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
	if d.waiting == 0 {
		d.full = make(chan struct{})
	}
}

// Full returns a channel that is closed while a change waits for room, and why.
func (d *Disk) Full() (<-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full, d.noRoom
}

// Fail notes why the engine has failed. The first reason stays.
func (d *Disk) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.failed)
	}
}

// Failure is why the engine has failed, or nil.
func (d *Disk) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Failed is closed when the engine has failed.
func (d *Disk) Failed() <-chan struct{} { return d.failed }

// Follow has the inventory kept, from what there is on.
func (d *Disk) Follow(stock *Stock) { d.tracker = stock.follow(d, d.FS, d.dir) }

// Close lets go of what keeping the inventory has open.
func (d *Disk) Close() { d.tracker.Close() }

// Leave returns when no change is under way and none will ever be again, so that
// the directory can be given to another engine.
func (d *Disk) Leave() {
	d.changes.Lock()
	defer d.changes.Unlock()
	if !d.left {
		d.left = true
		close(d.wakes)
	}
}

// inside reports whether a file is one of the engine's. A backup, for example, is
// not: it fails if it finds no room.
func (d *Disk) inside(name string) bool {
	dir := filepath.Dir(filepath.Clean(name))
	return dir == d.dir || filepath.Clean(name) == d.dir
}

// open guards the file that f opens for writing.
func (d *Disk) open(name string, f func() (vfs.File, error)) (file vfs.File, err error) {
	if !d.inside(name) {
		return f()
	}
	t := d.tracker.Begin(name)
	d.Change(func() (err error) {
		file, err = f()
		return err
	})
	return &diskFile{File: file, disk: d, tracked: t}, nil
}

// Create implements [vfs.FS].
func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite implements [vfs.FS].
func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements [vfs.FS].
func (d *Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.open(newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
	d.tracker.Removed(oldname)
	return file, err
}

// OpenDir implements [vfs.FS].
func (d *Disk) OpenDir(name string) (vfs.File, error) {
	file, err := d.FS.OpenDir(name)
	if err != nil || !d.inside(name) {
		return file, err
	}
	return &diskFile{File: file, disk: d, folder: true}, nil
}

// Rename implements [vfs.FS].
func (d *Disk) Rename(oldname, newname string) error {
	if !d.inside(newname) {
		return d.FS.Rename(oldname, newname)
	}
	d.Change(func() error { return d.FS.Rename(oldname, newname) })
	return nil
}

// Remove implements [vfs.FS].
func (d *Disk) Remove(name string) error {
	if d.tracker.Spares(name) {
		return nil
	}
	err := d.Try(func() error { return d.FS.Remove(name) })
	if err == nil {
		d.tracker.Removed(name)
	}
	return err
}

// RemoveAll implements [vfs.FS].
func (d *Disk) RemoveAll(name string) error {
	return d.Try(func() error { return d.FS.RemoveAll(name) })
}

// Lock implements [vfs.FS]. The store has locked the directory, for all its
// engines.
func (d *Disk) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap implements [vfs.FS].
func (d *Disk) Unwrap() vfs.FS { return d.FS }

// diskFile is a file of the directory, or the directory itself, to which [Disk]'s
// rules apply.
type diskFile struct {
	vfs.File
	disk    *Disk
	folder  bool
	tracked *Tracked // nil if it is not
}

// Write implements [vfs.File].
func (f *diskFile) Write(p []byte) (n int, err error) {
	f.disk.Change(func() error {
		m, err := f.File.Write(p[n:])
		f.disk.tracker.Wrote(f.tracked, p[n:n+m])
		n += m
		return err
	})
	return n, nil
}

// WriteAt implements [vfs.File].
func (f *diskFile) WriteAt(p []byte, offset int64) (n int, err error) {
	f.disk.Change(func() error {
		m, err := f.File.WriteAt(p[n:], offset+int64(n))
		n += m
		return err
	})
	return n, nil
}

// Preallocate implements [vfs.File]. It only makes writing faster.
func (f *diskFile) Preallocate(offset, length int64) error {
	_ = f.disk.Try(func() error { return f.File.Preallocate(offset, length) })
	return nil
}

// Sync implements [vfs.File].
func (f *diskFile) Sync() error {
	f.synced(f.File.Sync)
	return nil
}

// synced makes durable what was written, and says so.
func (f *diskFile) synced(sync func() error) {
	length := f.tracked.Length()
	f.disk.sync(sync)
	if f.folder {
		f.disk.tracker.Named()
	}
	f.disk.tracker.Durable(f.tracked, length)
}

// SyncData implements [vfs.File].
func (f *diskFile) SyncData() error {
	f.synced(f.File.SyncData)
	return nil
}

// SyncTo implements [vfs.File].
func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	f.disk.sync(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, nil
}

// Close implements [vfs.File].
func (f *diskFile) Close() error {
	f.disk.sync(f.File.Close)
	f.disk.tracker.Closed(f.tracked)
	return nil
}
