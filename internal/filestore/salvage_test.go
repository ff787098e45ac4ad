package filestore

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// salvaged salvages a folder, in which nothing may change, and says what was lost by its kind.
func salvaged(t *testing.T, dir string) (to string, threads int, lost map[string]string) {
	t.Helper()
	before := files(t, dir)
	to = filepath.Join(t.TempDir(), "saved")
	threads, all, err := Salvage(t.Context(), dir, to)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Error("the damaged store was changed")
	}
	lost = map[string]string{}
	for _, l := range all {
		lost[l.What] += l.Name + ": " + l.Reason + "\n"
	}
	onlyOwners(t, to)
	return to, threads, lost
}

// TestSalvage: what is whole is in the new store, as it was; what is not is listed, and no
// half of it is there.
func TestSalvage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		lost  map[string]string // what is said, by kind
		least int               // how many threads of four are saved at least
		most  int
	}{
		"nothing is damaged": {func(*testing.T, string) {}, nil, 4, 4},
		"the list of tables ends early": {func(t *testing.T, dir string) {
			name, size := current(t, dir)
			if err := os.Truncate(name, int64(size-5)); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"list": "MANIFEST-"}, 4, 4},
		"the list of tables and its marker are gone": {func(t *testing.T, dir string) {
			remove(t, dir, "MANIFEST*")
			remove(t, dir, "marker.*")
		}, map[string]string{"list": "MANIFEST-", "file": "marker."}, 4, 4},
		"all small files are damaged": {func(t *testing.T, dir string) {
			for _, name := range []string{formatFile, folder.InventoryFile, folder.SyncedFile, "OPTIONS*"} {
				truncate(t, dir, name)
			}
		}, map[string]string{"file": folder.InventoryFile}, 4, 4},
		"a table is cut off": {func(t *testing.T, dir string) {
			table := matching(t, dir, "*.sst")[0]
			info, err := os.Stat(table)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(table, info.Size()-60); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"list": "threads"}, 0, 1},
		"a message is damaged": {func(t *testing.T, dir string) {
			table := matching(t, dir, "*.sst")[0]
			text, err := os.ReadFile(table)
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			put(t, string(text), table)
		}, map[string]string{"thread": "acme/thread-", "table": ".sst"}, 2, 3},
		"the newest log is missing": {func(t *testing.T, dir string) {
			logs := matching(t, dir, "*.log")
			remove(t, dir, filepath.Base(logs[len(logs)-1]))
		}, map[string]string{"log": ".log"}, 3, 3},
		"so is the inventory": {func(t *testing.T, dir string) {
			logs := matching(t, dir, "*.log")
			remove(t, dir, filepath.Base(logs[len(logs)-1]))
			remove(t, dir, folder.InventoryFile)
		}, map[string]string{"log": ".log"}, 3, 3},
		"the newest log is damaged": {func(t *testing.T, dir string) {
			logs := matching(t, dir, "*.log")
			text, err := os.ReadFile(logs[len(logs)-1])
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			put(t, string(text), logs[len(logs)-1])
		}, map[string]string{"log": "it cannot be read behind byte"}, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := left(t, Options{})
			c.spoil(t, dir)
			to, threads, lost := salvaged(t, dir)
			if threads < c.least || threads > c.most {
				t.Errorf("%d threads were saved, want %d to %d; lost: %v", threads, c.least, c.most, lost)
			}
			if len(c.lost) == 0 && len(lost) > 0 {
				t.Errorf("it says that this was lost: %v", lost)
			}
			for what, want := range c.lost {
				if !strings.Contains(lost[what], want) {
					t.Errorf("of the lost %ss it says %q, want %q in it", what, lost[what], want)
				}
			}
			s := openAt(t, to)
			found := 0
			for n := range 4 {
				head, err := s.Head(t.Context(), threadKey(n))
				if errors.Is(err, store.ErrNotFound) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				found++
				whole(t, s, head)
				w := newWriter(t, s, n)
				w.head = *head
				w.write(t.Context(), 1, 10)
			}
			if found != threads {
				t.Errorf("%d threads are there, %d were saved", found, threads)
			}
			newWriter(t, s, 9).write(t.Context(), 1, 10)
		})
	}
}

// TestSalvageLists: what is saved is in all lists again.
func TestSalvageLists(t *testing.T) {
	t.Parallel()
	dir, threads := left(t, Options{})
	s := openAt(t, dir)
	c := newWriter(t, s, threads).next(10)
	c.Process, c.Parent, c.User = "p", threadKey(0).Thread, "ann"
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	to, _, _ := salvaged(t, dir)
	was, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer was.Close()
	is, err := Open(to, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer is.Close()
	for _, space := range []byte{spaceMeta, spaceNames, spaceThreads, spaceOwned, spaceActive, spaceChildren,
		spaceLedger, spaceLists, spaceTenants} {
		if got, want := entries(t, is, space), entries(t, was, space); !maps.Equal(got, want) {
			t.Errorf("space %d has %d entries, want %d as they were", space, len(got), len(want))
		}
	}
}

// entries are all keys and values of a space.
func entries(t *testing.T, s *Store, space byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := s.committer.view(t.Context(), func(v view) error {
		return v.ascend([]byte{space}, []byte{space}, func(k, value []byte) (bool, error) {
			all[string(k)] = string(value)
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSalvageRefused: a store that is open, a folder that is there, and one that is no store.
func TestSalvageRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	openAt(t, dir)
	to := filepath.Join(t.TempDir(), "saved")
	if _, _, err := Salvage(t.Context(), dir, to); !errors.Is(err, store.ErrStoreLocked) {
		t.Errorf("a store that is open: %v", err)
	}
	if _, _, err := Salvage(t.Context(), made(t), t.TempDir()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there: %v", err)
	}
	if _, _, err := Salvage(t.Context(), t.TempDir(), to); err == nil {
		t.Error("an empty folder was salvaged")
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}
