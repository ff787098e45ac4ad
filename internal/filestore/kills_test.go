package filestore

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
)

const (
	// killsVariable says how many times TestKills kills.
	killsVariable = "FILESTORE_TEST_KILLS"
	// usualKills is how often it does so without the variable.
	usualKills = 12
	// killsEach is how many kills a store sees before there is a new one.
	killsEach = 25
)

// TestKills kills a process that commits, and whose tables are small, so that it flushes and
// compacts all the time; some of them before they have opened the store. No crash may look
// like damage, and what was acknowledged is there.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := int(fromEnvironment(t, killsVariable, usualKills))
	seed := fromEnvironment(t, seedVariable, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d", seedVariable, seed)
	r := rand.New(rand.NewPCG(seed, 2))
	var path string
	var acknowledged map[string]uint64
	commits, changed := uint64(0), 0
	for n := range kills {
		if n%killsEach == 0 {
			path, acknowledged = filepath.Join(t.TempDir(), "data"), map[string]uint64{}
		}
		before, had := total(acknowledged), inventoryText(t, path)
		early, within := n%3 == 0, 150
		if early {
			within = 60
		}
		killed(t, path, early, time.Duration(r.IntN(within*1000))*time.Microsecond, acknowledged, smallVariable+"=1")
		if inventoryText(t, path) != had {
			changed++
		}
		if _, err := os.Stat(path); err == nil {
			survived(t, path, acknowledged)
		}
		commits += total(acknowledged) - before
		if t.Failed() {
			t.Fatalf("kill %d", n)
		}
		if n%killsEach == killsEach-1 {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("| kills | %d |", kills)
	t.Logf("| of them while or after the set of files changed | %d |", changed)
	t.Logf("| commits acknowledged, all of them there | %d |", commits)
	t.Logf("| crashes that looked like damage | 0 |")
	if commits == 0 || changed == 0 {
		t.Error("nothing was ever acknowledged, or no file was ever made")
	}
}

// inventoryText is the inventory of a folder; empty if there is none.
func inventoryText(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, folder.InventoryFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}
