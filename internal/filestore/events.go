package filestore

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
)

// reporter is told by Pebble what goes wrong in it. Pebble may hold its locks
// meanwhile, so nothing here calls it.
type reporter struct {
	log    *slog.Logger
	dir    string
	disk   *folder.Disk
	damage *damage
	merges *scheduler
}

// Infof implements [pebble.Logger].
func (r reporter) Infof(string, ...any) {}

// Errorf implements [pebble.Logger].
func (r reporter) Errorf(format string, args ...any) {
	r.log.Warn("the store reports trouble", "store", r.dir, "error", fmt.Sprintf(format, args...))
}

// Fatalf implements [pebble.Logger]. Pebble expects that the process ends here. It
// goes on, but it changes nothing any more.
func (r reporter) Fatalf(format string, args ...any) {
	r.disk.Fail(fmt.Errorf(format, args...))
}

// listener is what Pebble calls.
func (r reporter) listener() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if r.damage.found(filepath.Base(info.Path)) {
				r.log.Error("a file of the store is damaged: what is in the damaged part cannot be read, everything "+
					"else goes on; put a backup in its place",
					"store", r.dir, "file", filepath.Base(info.Path), "error", folder.FirstLine(info.Details))
			}
		},
		BackgroundError: func(err error) {
			r.merges.fail()
			if r.disk.Failure() == nil && !pebble.IsCorruptionError(err) {
				r.log.Warn("the store could not tidy up its files; it tries again",
					"store", r.dir, "error", folder.FirstLine(err))
			}
		},
	}
}

// damage is what is known of damaged files.
type damage struct {
	mu    sync.Mutex
	files map[string]bool
	// shared is the first damage that was found in what all threads share: their names and
	// lists, the accounts, and the numbers that are given away.
	shared error
}

// share notes damage of what all threads share.
func (d *damage) share(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared == nil {
		d.shared = folder.Brief(folder.ErrDamaged, folder.FirstLine(err))
	}
}

// ofAll returns the damage of what all threads share; nil if none was found.
func (d *damage) ofAll() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shared
}

// found notes a file, and reports whether that is new.
func (d *damage) found(file string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[file] {
		return false
	}
	if d.files == nil {
		d.files = map[string]bool{}
	}
	d.files[file] = true
	return true
}

func (d *damage) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files))
}
