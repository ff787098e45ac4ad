package filestore

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDamageInLog: in a log that was not closed, every byte but those of the last commit
// is known to be right or wrong.
func TestDamageInLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	w := newWriter(t, s, 1)
	w.write(t.Context(), 40, 700)
	name := matching(t, dir, "*.log")[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	before, damaged := damageInLog(whole, uint32(number), 0)
	if damaged || before < 40*700 {
		t.Fatalf("a log that is being written ends at byte %d of %d, damaged: %t", before, len(whole), damaged)
	}
	w.write(t.Context(), 1, 700)
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	end, damaged := damageInLog(whole, uint32(number), 0)
	if damaged || end < before+700 {
		t.Fatalf("the next commit ends at byte %d, after %d, damaged: %t", end, before, damaged)
	}
	for at := 0; at < end; at += 11 {
		whole[at] ^= 1
		if _, damaged := damageInLog(whole, uint32(number), 0); damaged != (at < before) {
			t.Errorf("byte %d, of a log whose last commit begins at %d: damaged is %t", at, before, damaged)
		}
		whole[at] ^= 1
		if at%7 == 0 {
			if _, damaged := damageInLog(whole[:at], uint32(number), 0); damaged {
				t.Errorf("a log that was cut to %d bytes is called damaged", at)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	whole[end-1] ^= 1
	if _, damaged := damageInLog(whole, uint32(number), 0); !damaged {
		t.Error("the last commit of a log that was closed is damaged, and was not found")
	}
}
