package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Taking stock: before Pebble opens a folder, what is there is compared with the inventory.
// Pebble would remove what only a damaged list could have named.

// Stock is what a folder has.
type Stock struct {
	inventory *Inventory // what it is from now on
	list      *manifest
	// Leftover are tables that are not in use, but that may have been: the list of tables does
	// not end with a whole record, or there is no inventory to compare it with. They stay
	// until a later start has found nothing amiss.
	Leftover []string
}

// Amiss is what is wrong with the files of a folder, as the inventory or their own list
// has them.
type Amiss struct{ text string }

// Error implements [error].
func (e *Amiss) Error() string { return e.text }

// Unwrap returns that it is damage.
func (e *Amiss) Unwrap() error { return ErrDamaged }

func amissf(format string, args ...any) error { return &Amiss{fmt.Sprintf(format, args...)} }

// TakeStock looks at the files of a folder and returns what there is. An error that is a
// Amiss says what is missing or damaged. There is no stock where nothing was ever
// stored.
func TakeStock(dir string) (*Stock, error) {
	before, err := ReadInventory(dir)
	if err != nil {
		return nil, err
	}
	at, err := pebble.Peek(dir, vfs.Default)
	if err != nil {
		return nil, Judged(err)
	}
	here, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	if !at.Exists {
		return newStock(), here.withoutList(before)
	}
	text, err := os.ReadFile(at.ManifestFilename)
	if err != nil {
		return nil, Judged(err)
	}
	_, number := kindOfFile(at.ManifestFilename)
	s := newStock()
	err = s.list.take(text)
	if errors.Is(err, errTag) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	known, listed := extent{}, false
	if before != nil {
		known, listed = before.manifests[number]
	}
	whole := err == nil && s.list.whole()
	switch name := filepath.Base(at.ManifestFilename); {
	case listed && int64(len(text)) < known.length:
		return nil, amissf("%s, the list of its tables, ends early: it has %d bytes, and had %d", name, len(text),
			known.length)
	case listed && crc32Update(0, text[:known.length]) != known.sum:
		return nil, amissf("%s, the list of its tables, is damaged: its first %d bytes are not as they were written",
			name, known.length)
	case !listed && before != nil && number < newest(before.manifests):
		return nil, amissf("%s, the list of its tables, is older than the one that was in use last", name)
	case !listed && !whole:
		return nil, amissf("%s, the list of its tables, cannot be read behind byte %d of %d", name, s.list.length,
			len(text))
	}
	if listed {
		if err := before.compare(here, s.list); err != nil {
			return nil, err
		}
	}
	if log, length := lastSynced(dir); length > 0 && log >= s.list.firstLog && !here.hasLog(log) {
		return nil, missingLog(log)
	}
	s.count(here, number, before)
	if !listed || !whole {
		s.Leftover = here.unknown(s.list)
	}
	return s, nil
}

func newStock() *Stock { return &Stock{inventory: newInventory(), list: &manifest{}} }

// Complete writes the inventory of a copy that has none: its files are as they are to
// be.
func Complete(disk vfs.FS, dir string) error {
	if in, err := ReadInventory(dir); in != nil || err != nil {
		return err
	}
	stock, err := TakeStock(dir)
	if err != nil || len(stock.Leftover) > 0 {
		return err
	}
	here, err := filesIn(dir)
	if err != nil {
		return err
	}
	for log := range stock.inventory.logs {
		stock.inventory.logs[log] = here.logs[log].size
	}
	for number := range stock.inventory.manifests {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("MANIFEST-%06d", number)))
		if err == nil {
			err = writeCopy(disk, dir, number, 0, text)
		}
		if err != nil {
			return err
		}
	}
	return stock.inventory.write(disk, dir)
}

// count writes down what there is. The numbers that were free are no more than before.
func (s *Stock) count(here *present, number uint64, before *Inventory) {
	if before == nil {
		before = newInventory()
	}
	in := s.inventory
	for table := range here.tables {
		in.tables[table] = unused
	}
	for log := range here.logs {
		if log >= s.list.firstLog {
			in.logs[log] = before.logs[log]
		}
	}
	in.next = max(here.next, before.next)
	in.follow(number, s.list)
}

// compare compares a folder with what the inventory says: every log that the list of tables
// needs is there, and every table has been there before or is new.
func (in *Inventory) compare(here *present, list *manifest) error {
	for log, length := range in.logs {
		found, there := here.logs[log]
		switch {
		case log < list.firstLog:
		case !there:
			return missingLog(log)
		case found.size < length:
			return amissf("%s ends early: it has %d bytes, and had %d", found.name, found.size, length)
		}
	}
	for table := range here.tables {
		_, used := list.levels[table]
		_, known := in.tables[table]
		if !used && !known && table < in.next {
			return amissf("%06d.sst is a table that is not in the list of its tables: either it does not belong "+
				"there, or the list is not the newest one", table)
		}
	}
	return nil
}

func missingLog(log uint64) error {
	return amissf("%06d.log is missing: what was committed to it, and is not in its tables yet, cannot be read", log)
}

// present are the files of a folder that have a number.
type present struct {
	tables    map[uint64]string // their names
	logs      map[uint64]presentLog
	manifests []uint64
	next      uint64 // larger than all numbers
}

// presentLog is a log of a folder.
type presentLog struct {
	name string
	size int64
}

func filesIn(dir string) (*present, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	here := &present{tables: map[uint64]string{}, logs: map[uint64]presentLog{}}
	for _, e := range entries {
		kind, number := kindOfFile(e.Name())
		if kind == "" {
			continue
		}
		here.next = max(here.next, number+1)
		switch kind {
		case tableFile:
			here.tables[number] = e.Name()
		case logFile:
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			here.logs[number] = presentLog{e.Name(), info.Size()}
		case manifestFile:
			here.manifests = append(here.manifests, number)
		}
	}
	return here, nil
}

// withoutList is for a folder that has no list of tables, as one that is new: where there
// was one, Pebble would make an empty store and remove the files.
func (here *present) withoutList(before *Inventory) error {
	const noList = "but no list of its tables (marker.manifest…)"
	for _, name := range here.tables {
		return amissf("it has %s, %s", name, noList)
	}
	for _, log := range here.logs {
		return amissf("it has %s, %s", log.name, noList)
	}
	if before != nil && len(before.logs) > 0 {
		return amissf("it has the file %s, %s", InventoryFile, noList)
	}
	return nil
}

// unknown are the tables that the list does not have.
func (here *present) unknown(list *manifest) (names []string) {
	for table, name := range here.tables {
		if _, used := list.levels[table]; !used {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (here *present) hasLog(log uint64) bool {
	_, there := here.logs[log]
	return there
}

// newestLog returns the number of the newest log; false if there is none.
func (here *present) newestLog() (newest uint64, there bool) {
	for log := range here.logs {
		newest, there = max(newest, log), true
	}
	return newest, there
}

// newest is the largest number.
func newest(manifests map[uint64]extent) (number uint64) {
	for n := range manifests {
		number = max(number, n)
	}
	return number
}
