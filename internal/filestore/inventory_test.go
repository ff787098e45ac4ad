package filestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// left is the folder of a store whose process was killed: some threads are in a table, and
// one, the last, is in the log.
func left(t *testing.T, opts Options) (dir string, threads int) {
	t.Helper()
	base := filepath.Join(t.TempDir(), "data")
	for range 2 {
		s, err := Open(base, opts)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 - 2*min(threads, 1) {
			newWriter(t, s, threads).write(t.Context(), 5, 800)
			threads++
		}
		if threads > 3 {
			dir = copied(t, base)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir, threads
}

// copied copies a folder, as it is. If Pebble writes or removes a file meanwhile, it begins again.
func copied(t *testing.T, from string) string {
	t.Helper()
	for {
		dir, before := filepath.Join(t.TempDir(), "data"), filesOf(t, from)
		err := os.CopyFS(dir, os.DirFS(from))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err == nil && slices.Equal(before, filesOf(t, from)) {
			return dir
		}
	}
}

// filesOf describes the files of a folder, each of which changes its description when it is
// written. A copy during which none has changed is what a crash in that moment leaves.
func filesOf(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // or it is gone meanwhile
			files = append(files, fmt.Sprint(e.Name(), " ", info.Size(), " ", info.ModTime()))
		}
	}
	return files
}

// sound opens a folder, in which all threads must be whole, and closes it.
func sound(t *testing.T, dir string, threads int, opts Options) {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Error(err)
		return
	}
	for n := range threads {
		head, err := s.Head(t.Context(), threadKey(n))
		if err != nil {
			t.Errorf("thread %d: %v", n, err)
			continue
		}
		whole(t, s, head)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// damaged checks that a folder is refused with a text, and that who only reads it is told that
// something is missing.
func damaged(t *testing.T, dir, want string) {
	t.Helper()
	err := refused(t, dir)
	for _, want := range []string{want, "put a backup in its place", "holdfast salvage"} {
		if !errors.Is(err, store.ErrUnreadable) || !strings.Contains(err.Error(), want) {
			t.Errorf("it was refused with %v, want %q", err, want)
		}
	}
	before := files(t, dir)
	s, err := Open(dir, Options{ReadOnly: true})
	if err == nil {
		_, _, err = s.Walk(t.Context(), "", 100)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if !errors.Is(err, store.ErrUnreadable) {
		t.Errorf("who reads it is told %v", err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Error("what was read was changed")
	}
}

// current is the manifest that is in use.
func current(t *testing.T, dir string) (name string, size int) {
	t.Helper()
	all := matching(t, dir, "MANIFEST*")
	name = all[len(all)-1]
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return name, int(info.Size())
}

// TestManifestDamaged: a list of tables that ends early, or has a wrong bit, would make
// threads vanish, and the table that has them be removed.
func TestManifestDamaged(t *testing.T) {
	t.Parallel()
	dir, threads := left(t, Options{})
	sound(t, copied(t, dir), threads, Options{})
	_, size := current(t, dir)
	for at := range size {
		broken := copied(t, dir)
		name, _ := current(t, broken)
		if at%2 == 0 {
			if err := os.Truncate(name, int64(at)); err != nil {
				t.Fatal(err)
			}
			damaged(t, broken, "ends early")
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text[at] ^= 1 << (at % 8)
		put(t, string(text), name)
		damaged(t, broken, "is damaged")
	}
}

// TestFilesAmiss: what is missing, or does not belong there, is said.
func TestFilesAmiss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"the newest log is missing": {func(t *testing.T, dir string) {
			logs := matching(t, dir, "*.log")
			remove(t, dir, filepath.Base(logs[len(logs)-1]))
		}, ".log is missing"},
		"a table of another time": {func(t *testing.T, dir string) {
			text, err := os.ReadFile(matching(t, dir, "*.sst")[0])
			if err != nil {
				t.Fatal(err)
			}
			put(t, string(text), dir, "000003.sst")
		}, "000003.sst is a table that is not in the list"},
		"the inventory is damaged": {func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, folder.InventoryFile))
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			put(t, string(text), dir, folder.InventoryFile)
		}, "does not have the checksum"},
		"the log ends before what was synced": {func(t *testing.T, dir string) {
			logs := matching(t, dir, "*.log")
			log := logs[len(logs)-1]
			info, err := os.Stat(log)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(log, info.Size()-1); err != nil {
				t.Fatal(err)
			}
		}, "is damaged at byte"},
		"the last commit in the log has a wrong bit": {func(t *testing.T, dir string) {
			logs := matching(t, dir, "*.log")
			text, err := os.ReadFile(logs[len(logs)-1])
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)-20] ^= 1
			put(t, string(text), logs[len(logs)-1])
		}, "is damaged at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := left(t, Options{})
			c.spoil(t, dir)
			damaged(t, dir, c.want)
		})
	}
}

// TestWithoutInventory: a folder that has none, as after a crash before the first, gets one when
// it is opened, if its list of tables can be read to its end.
func TestWithoutInventory(t *testing.T) {
	t.Parallel()
	dir, threads := left(t, Options{unchecked: true})
	if _, err := os.Stat(filepath.Join(dir, folder.InventoryFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("there is an inventory: %v", err)
	}
	broken := copied(t, dir)
	name, size := current(t, broken)
	if err := os.Truncate(name, int64(size-5)); err != nil {
		t.Fatal(err)
	}
	damaged(t, broken, "cannot be read behind byte")
	sound(t, dir, threads, Options{})
	if in, err := folder.ReadInventory(dir); in == nil || err != nil {
		t.Errorf("the folder has the inventory %v, %v", in, err)
	}
	sound(t, dir, threads, Options{})
}

// TestMissingLogWithoutInventory: the file that says how far a log was synced still says that
// there was one.
func TestMissingLogWithoutInventory(t *testing.T) {
	t.Parallel()
	dir, _ := left(t, Options{})
	logs := matching(t, dir, "*.log")
	remove(t, dir, folder.InventoryFile)
	remove(t, dir, filepath.Base(logs[len(logs)-1]))
	damaged(t, dir, ".log is missing")
}

// TestLeftover: a table that no list has, in a folder without an inventory, may be a crash's
// or may have been lost: it stays for one start, and the log says so.
func TestLeftover(t *testing.T) {
	t.Parallel()
	dir, threads := left(t, Options{unchecked: true})
	table := filepath.Join(dir, "000003.sst")
	text, err := os.ReadFile(matching(t, dir, "*.sst")[0])
	if err != nil {
		t.Fatal(err)
	}
	put(t, string(text), table)
	for _, there := range []bool{true, false} {
		sound(t, dir, threads, Options{})
		if _, err := os.Stat(table); (err == nil) != there {
			t.Errorf("the table is there: %v, want %t", err, there)
		}
	}
}

// TestOldInventory: an inventory that is not kept up for a while, as when it cannot be written,
// is not taken for damage.
func TestOldInventory(t *testing.T) {
	t.Parallel()
	dir, threads := left(t, Options{})
	for range 3 {
		s, err := Open(dir, Options{unchecked: true})
		if err != nil {
			t.Fatal(err)
		}
		newWriter(t, s, threads).write(t.Context(), 3, 500)
		threads++
		killed := copied(t, dir)
		if err := s.committer.writing.db.Flush(); err != nil {
			t.Fatal(err)
		}
		newWriter(t, s, threads).write(t.Context(), 3, 500)
		threads++
		flushed := copied(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		sound(t, killed, threads-1, Options{})
		sound(t, flushed, threads, Options{})
		sound(t, dir, threads, Options{})
	}
}

// TestInventoryOfBackup: a backup of either kind has an inventory that is right.
func TestInventoryOfBackup(t *testing.T) {
	t.Parallel()
	dir, threads := left(t, Options{unchecked: true})
	closed := filepath.Join(t.TempDir(), "closed")
	if err := Copy(t.Context(), dir, closed); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, dir)
	open := filepath.Join(t.TempDir(), "open")
	if err := s.Backup(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"of a closed store": closed, "of an open store": open} {
		if in, err := folder.ReadInventory(dir); in == nil || err != nil {
			t.Errorf("%s: the inventory is %v, %v", name, in, err)
		}
		broken := copied(t, dir)
		manifest, size := current(t, broken)
		if err := os.Truncate(manifest, int64(size-1)); err != nil {
			t.Fatal(err)
		}
		damaged(t, broken, "ends early")
		cut := copied(t, dir)
		logs := matching(t, cut, "*.log")
		info, err := os.Stat(logs[len(logs)-1])
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 0 {
			if err := os.Truncate(logs[len(logs)-1], info.Size()-1); err != nil {
				t.Fatal(err)
			}
			damaged(t, cut, "ends early")
		}
		sound(t, dir, threads, Options{ReadOnly: true})
		sound(t, dir, threads, Options{})
	}
}

// TestInventoryWhileChanging: whatever the store does, its inventory is what its manifest says
// and what is in the folder.
func TestInventoryWhileChanging(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir, Options{memTable: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, s, 1)
	for range 8 {
		w.write(t.Context(), 40, 20_000)
		if err := s.committer.writing.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.committer.writing.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	tables, err := s.committer.writing.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	in, err := folder.ReadInventory(dir)
	if err != nil {
		t.Fatal(err)
	}
	levels := in.Tables()
	for level, infos := range tables {
		for _, info := range infos {
			if got, known := levels[uint64(info.BackingSSTNum)]; !known || got != level {
				t.Errorf("table %s is of level %d, and %d in the inventory, known: %t", info.BackingSSTNum, level, got,
					known)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound(t, dir, 0, Options{})
}

// TestReusedLog: Pebble writes a log into the file of an older one, of whose bytes some are
// behind its end. Such bytes may be those of the log's trailer, and are no damage.
func TestReusedLog(t *testing.T) {
	t.Parallel()
	opts := Options{memTable: 256 << 10}
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w := newWriter(t, s, 0)
	for range 200 {
		w.write(t.Context(), 1, 20<<10)
		killed := copied(t, dir)
		logs := matching(t, killed, "*.log")
		name := logs[len(logs)-1]
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		const behind = 50 << 10
		if len(text) < behind+20<<10 ||
			bytes.Contains(text[behind:], binary.LittleEndian.AppendUint32(nil, uint32(number))) {
			continue // it is in a file of its own, or has filled the other one
		}
		trailer := binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 0, 5}, uint32(number)+1)
		copy(text[behind+10<<10:], trailer)
		put(t, string(text), name)
		sound(t, killed, 1, opts)
		return
	}
	t.Fatal("no log was written into the file of an older one")
}
