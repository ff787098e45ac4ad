// Package folder looks after the folder of a store, below its keys: where Pebble meets the disk
// (disk.go), what errors mean (trouble.go), and which files there are.
//
// The inventory is a file of ours that says which of Pebble's files there are, and how far
// what is in them was synced. Pebble takes a manifest that ends early, or a log that is
// missing, for what a crash has left, and removes what it does not know. So what is in the
// folder is compared with the inventory before Pebble sees it; see stocktake.go.
//
// A crash at any moment must not look like damage. So the inventory never says more than
// what is durable, and it says it before Pebble relies on it:
//
//   - A manifest is in it as far as it was synced, before that sync returns: so before Pebble
//     names the manifest as the one to begin with, or removes what the manifest does not need.
//   - A log is in it when its name is durable, before anything is written to it. It is
//     needed until the manifest says that it is not, which is before Pebble removes it.
//   - A table is in it before it is begun, or has a number that was free when the inventory
//     was written.
//
// Each manifest also has a copy, which only salvage reads.
//
// It is written when the set of files changes, and never by a commit. It is replaced as a
// whole: a version of Holdfast that does not know it leaves it behind, which is noticed by
// the manifest, because every process that writes begins one of its own.
//
// inventory.go is the file, manifest.go and log.go read what Pebble writes, stocktake.go compares,
// tracker.go keeps the file while an engine works, and rescue.go is what can be read of a damaged
// folder.
package folder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-agents/holdfast/internal/frame"
)

const (
	// InventoryFile is the name of the inventory.
	InventoryFile = "INVENTORY"
	inventoryWord = "holdfast inventory 1"
)

// Inventory is what the file says.
type Inventory struct {
	next      uint64 // no file had this number, or a larger one
	firstLog  uint64 // the logs before it are not needed
	manifests map[uint64]extent
	logs      map[uint64]int64 // how long those are that were closed; 0 for the others
	tables    map[uint64]int   // their levels, or unused
}

// extent is how far a file was synced, and the checksum of that.
type extent struct {
	length int64
	sum    uint32
}

// unused is the level of a table that is not in use yet, or no more.
const unused = -1

func newInventory() *Inventory {
	return &Inventory{manifests: map[uint64]extent{}, logs: map[uint64]int64{}, tables: map[uint64]int{}}
}

// Tables returns the tables that the inventory has, and at which level each is used; those that
// are not are at -1.
func (in *Inventory) Tables() map[uint64]int { return maps.Clone(in.tables) }

// encode is the text of the file: lines, and their checksum.
func (in *Inventory) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nnext %d\nfirst-log %d\n", inventoryWord, in.next, in.firstLog)
	for _, n := range slices.Sorted(maps.Keys(in.manifests)) {
		fmt.Fprintf(&b, "manifest %d %d %d\n", n, in.manifests[n].length, in.manifests[n].sum)
	}
	for _, n := range slices.Sorted(maps.Keys(in.logs)) {
		fmt.Fprintf(&b, "log %d %d\n", n, in.logs[n])
	}
	for _, n := range slices.Sorted(maps.Keys(in.tables)) {
		fmt.Fprintf(&b, "table %d %d\n", n, in.tables[n])
	}
	return fmt.Appendf(b.Bytes(), "sum %08x\n", frame.Sum(b.Bytes()))
}

// decodeInventory reads what encode wrote.
func decodeInventory(text []byte) (*Inventory, error) {
	end := bytes.LastIndex(text, []byte("sum "))
	if end < 0 || string(text[end:]) != fmt.Sprintf("sum %08x\n", frame.Sum(text[:end])) {
		return nil, fmt.Errorf("its file %s does not have the checksum that it was written with: %w", InventoryFile,
			ErrDamaged)
	}
	lines := strings.Split(strings.TrimSuffix(string(text[:end]), "\n"), "\n")
	if lines[0] != inventoryWord {
		return nil, fmt.Errorf("its file %s begins with %q: %w", InventoryFile, lines[0], ErrDamaged)
	}
	in := newInventory()
	for _, line := range lines[1:] {
		if err := in.add(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("its file %s says %q: %w", InventoryFile, line, ErrDamaged)
		}
	}
	return in, nil
}

// add takes in a line.
func (in *Inventory) add(words []string) error {
	var n [3]int64
	for i, word := range words[min(1, len(words)):] {
		var err error
		if n[min(i, 2)], err = strconv.ParseInt(word, 10, 64); err != nil {
			return err
		}
	}
	switch key := strings.Join(words[:min(1, len(words))], ""); {
	case key == "next" && len(words) == 2:
		in.next = uint64(n[0])
	case key == "first-log" && len(words) == 2:
		in.firstLog = uint64(n[0])
	case key == "manifest" && len(words) == 4:
		in.manifests[uint64(n[0])] = extent{length: n[1], sum: uint32(n[2])}
	case key == "log" && len(words) == 3:
		in.logs[uint64(n[0])] = n[1]
	case key == "table" && len(words) == 3:
		in.tables[uint64(n[0])] = int(n[1])
	default:
		return errors.New("not a line of an inventory")
	}
	return nil
}

// ReadInventory reads the inventory of a folder; nil if there is none.
func ReadInventory(dir string) (*Inventory, error) {
	text, err := os.ReadFile(filepath.Join(dir, InventoryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeInventory(text)
}

// write replaces the inventory of a folder. It is durable then.
func (in *Inventory) write(disk vfs.FS, dir string) error {
	temporary := disk.PathJoin(dir, "."+InventoryFile)
	f, err := disk.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(in.encode())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(temporary, disk.PathJoin(dir, InventoryFile)); err != nil {
		return err
	}
	return syncNames(disk, dir)
}

// syncNames makes the names in a folder durable.
func syncNames(disk vfs.FS, dir string) error {
	f, err := disk.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// The kinds of Pebble's files that have a number.
const (
	tableFile    = "table"
	logFile      = "log"
	manifestFile = "manifest"
	otherFile    = "other" // its options, and what is under work
)

// kindOfFile returns which file of Pebble's has a name; "" for none.
func kindOfFile(name string) (kind string, number uint64) {
	base := filepath.Base(name)
	digits, kind := base, otherFile
	switch ext := filepath.Ext(base); {
	case ext == ".sst":
		digits, kind = strings.TrimSuffix(base, ext), tableFile
	case ext == ".log":
		digits, kind = strings.TrimSuffix(base, ext), logFile
	case strings.HasPrefix(base, "MANIFEST-"):
		digits, kind = strings.TrimPrefix(base, "MANIFEST-"), manifestFile
	case strings.HasPrefix(base, "OPTIONS-"):
		digits = strings.TrimPrefix(base, "OPTIONS-")
	case ext == ".dbtmp":
		digits = strings.TrimSuffix(base, ext)
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return "", 0
	}
	return kind, n
}

// follow takes in what is durable of a manifest.
func (in *Inventory) follow(number uint64, m *manifest) {
	in.manifests[number] = extent{length: m.length, sum: m.sum}
	in.firstLog = m.firstLog
	for table := range in.tables {
		in.tables[table] = unused
	}
	maps.Copy(in.tables, m.levels)
}

// copyName is the name of the copy of a manifest, which is made so that a damaged one does not
// cost what its tables have: salvage reads the copy.
func copyName(number uint64) string { return fmt.Sprintf("COPY-%06d", number) }

// writeCopy writes a part of the copy of a manifest, from one byte on. It is durable then.
func writeCopy(disk vfs.FS, dir string, number uint64, at int64, part []byte) error {
	f, err := disk.OpenReadWrite(disk.PathJoin(dir, copyName(number)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(part, at)
	return errors.Join(err, f.Sync(), f.Close())
}
