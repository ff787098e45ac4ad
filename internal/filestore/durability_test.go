package filestore

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestDurabilityFileSystems: only a local disk is worth the machine's level.
func TestDurabilityFileSystems(t *testing.T) {
	t.Parallel()
	const plenty = 100 << 30
	for _, c := range []struct {
		name  string
		at    fileSystem
		level store.Level
		note  string // "" is none
	}{
		{"ext4", fileSystem{0xef53, plenty}, store.LevelMachine, ""},
		{"xfs", fileSystem{0x58465342, plenty}, store.LevelMachine, ""},
		{"tmpfs", fileSystem{0x01021994, plenty}, store.LevelProcess, "is in memory (tmpfs)"},
		{"NFS", fileSystem{0x6969, plenty}, store.LevelProcess, "not on a local disk (NFS)"},
		{"CIFS", fileSystem{0xff534d42, plenty}, store.LevelProcess, "depends on the mount"},
		{"FUSE", fileSystem{0x65735546, plenty}, store.LevelProcess, "(FUSE)"},
		{"9p", fileSystem{0x01021997, plenty}, store.LevelProcess, "(9p)"},
		{"a full disk", fileSystem{0xef53, 12 << 20}, store.LevelMachine, "only 12 MiB left"},
	} {
		d := c.at.judge("data")
		notes := strings.Join(d.Notes, "\n")
		if d.Level != c.level || d.Evicts || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %+v, want %s and %q", c.name, d, c.level, c.note)
		}
	}
}

// TestDurabilityInMemory looks at a store that really is in memory. Linux machines
// have such a folder.
func TestDurabilityInMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not say where a folder is")
	}
	folder, err := os.MkdirTemp("/dev/shm", "holdfast-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	d, err := openAt(t, filepath.Join(folder, "data")).Durability(t.Context())
	if err != nil || d.Level != store.LevelProcess || !strings.Contains(strings.Join(d.Notes, "\n"), "tmpfs") {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestDurabilityMissing: when the folder cannot be looked at, less is claimed.
func TestDurabilityMissing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not say where a folder is")
	}
	d := durabilityIn(filepath.Join(t.TempDir(), "data"))
	if d.Level != store.LevelProcess || !strings.Contains(strings.Join(d.Notes, "\n"), "could not be looked at") {
		t.Errorf("%+v", d)
	}
}
