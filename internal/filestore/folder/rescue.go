package folder

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The rest of a damaged folder, as Pebble can read it. Nothing in the folder is changed: where
// a file is damaged that Pebble would not open the folder with, Pebble is shown another one,
// which is in memory.

// Rescue is a folder as Pebble is to see it.
type Rescue struct {
	vfs.FS                 // the folder as it is
	shown  vfs.FS          // files that are shown instead
	hidden map[string]bool // files that are not shown
	Lost   []Loss          // what could not be salvaged
}

// Loss is something that could not be salvaged.
type Loss struct {
	What   string // "thread", "table", "log", "list" or "file"
	Name   string
	Reason string
}

// Lose notes a loss.
func (r *Rescue) Lose(what, name, reason string, args ...any) {
	r.Lost = append(r.Lost, Loss{What: what, Name: name, Reason: fmt.Sprintf(reason, args...)})
}

// NewRescue looks what is left of a folder.
func NewRescue(dir string) (*Rescue, error) {
	r := &Rescue{FS: vfs.Default, shown: vfs.NewMem(), hidden: map[string]bool{}}
	here, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	if err := r.shown.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	known, err := ReadInventory(dir)
	if err != nil {
		r.Lose("file", InventoryFile, "%v", err)
		known = nil
	}
	if known == nil {
		known = newInventory()
	}
	list, err := r.list(dir, here, known)
	if err != nil {
		return nil, err
	}
	r.tables(here, list)
	return r, r.logs(dir, here, known, list)
}

// list finds the list of tables that is best, shows it, and returns what it says.
func (r *Rescue) list(dir string, here *present, known *Inventory) (*manifest, error) {
	number := slices.Max(append(here.manifests, newest(known.manifests)))
	at, err := pebble.Peek(dir, vfs.Default)
	if err == nil && at.Exists {
		_, number = kindOfFile(at.ManifestFilename)
	} else {
		r.Lose("file", "marker.manifest", "it is missing, so the newest list of tables is taken")
		err := r.show(dir, fmt.Sprintf("marker.manifest.999999.MANIFEST-%06d", number), nil)
		if err != nil {
			return nil, err
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "marker.format-version.*")); err != nil || len(names) == 0 {
		r.Lose("file", "marker.format-version", "it is missing, so this version's own is taken")
		if err := r.show(dir, fmt.Sprintf("marker.format-version.999999.%03d", pebble.FormatTableFormatV6),
			nil); err != nil {
			return nil, err
		}
	}
	var best *manifest
	var text []byte
	name := fmt.Sprintf("MANIFEST-%06d", number)
	for _, from := range []string{name, copyName(number)} {
		b, err := os.ReadFile(filepath.Join(dir, from))
		m := &manifest{}
		if broken := m.take(b); err != nil || broken != nil || m.length < known.manifests[number].length {
			r.Lose("list", from, "%s", FirstLine(cmp.Or(err, broken,
				fmt.Errorf("it ends early, after %d bytes", len(b)))))
		}
		if best == nil || m.length > best.length {
			best, text = m, b
		}
	}
	if best.length == 0 {
		return nil, fmt.Errorf("there is no list of its tables that can be read, neither %s nor %s: %w", name,
			copyName(number), ErrDamaged)
	}
	return best, r.show(dir, name, text[:best.length])
}

// show shows another file in the place of one.
func (r *Rescue) show(dir, name string, text []byte) error {
	f, err := r.shown.Create(filepath.Join(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// tables notes which tables are missing, and which are in no list.
func (r *Rescue) tables(here *present, list *manifest) {
	for _, table := range slices.Sorted(maps.Keys(list.levels)) {
		if here.tables[table] == "" {
			r.Lose("table", fmt.Sprintf("%06d.sst", table), "it is missing")
		}
	}
	for _, name := range here.unknown(list) {
		r.Lose("table", name, "it is in no list, so it was not read: it may be of an earlier time")
	}
}

// logs shows the logs up to the first damage: what was committed behind it may build on what
// is lost.
func (r *Rescue) logs(dir string, here *present, known *Inventory, list *manifest) error {
	needed := map[uint64]bool{}
	for log := range known.logs {
		needed[log] = log >= list.firstLog
	}
	for log := range here.logs {
		needed[log] = log >= list.firstLog
	}
	if log, length := lastSynced(dir); length > 0 {
		needed[log] = log >= list.firstLog
	}
	maps.DeleteFunc(needed, func(_ uint64, is bool) bool { return !is })
	all := slices.Sorted(maps.Keys(needed))
	for i, log := range all {
		whole, err := r.log(dir, log, known.logs[log], i == len(all)-1)
		if err != nil {
			return err
		}
		if whole {
			continue
		}
		for _, behind := range all[i+1:] {
			name := here.logs[behind].name
			r.hidden[name] = true
			r.Lose("log", cmp.Or(name, fmt.Sprintf("%06d.log", behind)),
				"it was not read, because it goes on behind what is lost")
		}
		return nil
	}
	return nil
}

// log shows a log as far as it can be read, and reports whether that is all of it.
func (r *Rescue) log(dir string, number uint64, length int64, newest bool) (whole bool, err error) {
	name := fmt.Sprintf("%06d.log", number)
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		r.Lose("log", name, "%s", FirstLine(err))
		return false, nil
	}
	synced := max(length, readSynced(dir, number))
	at, damaged := damageInLog(text, uint32(number), int(synced))
	closed := isTrailer(text[at:], uint32(number))
	if !damaged && (newest || closed || at == len(text)) {
		return true, nil
	}
	r.Lose("log", name, "it cannot be read behind byte %d of %d", at, max(int64(len(text)), synced))
	return false, r.show(dir, name, text[:recordEnd(text[:at], uint32(number))])
}

// instead reports whether a file is shown in the place of another one.
func (r *Rescue) instead(name string) bool {
	_, err := r.shown.Stat(name)
	return err == nil
}

// Open implements [vfs.FS].
func (r *Rescue) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if r.instead(name) {
		return r.shown.Open(name)
	}
	return r.FS.Open(name, opts...)
}

// Stat implements [vfs.FS].
func (r *Rescue) Stat(name string) (vfs.FileInfo, error) {
	if r.instead(name) && filepath.Ext(name) == ".log" {
		return r.shown.Stat(name)
	}
	return r.FS.Stat(name)
}

// List implements [vfs.FS]. Pebble's options are not shown: they may be damaged, and nobody
// needs them to read.
func (r *Rescue) List(dir string) ([]string, error) {
	names, err := r.FS.List(dir)
	if err != nil {
		return nil, err
	}
	instead, err := r.shown.List(dir)
	if err != nil {
		return nil, err
	}
	names = append(names, instead...)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return r.hidden[name] || strings.HasPrefix(name, "OPTIONS-")
	}), nil
}

// Unwrap implements [vfs.FS].
func (r *Rescue) Unwrap() vfs.FS { return r.FS }
