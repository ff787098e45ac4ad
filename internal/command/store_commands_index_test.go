package command

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckIndexCommand: the index that a server has written is right, for all threads and for one.
func TestCheckIndexCommand(t *testing.T) {
	path := madeStore(t)
	for _, args := range [][]string{{"check", "--index", path}, {"check", "--index", "--thread", "t", path}} {
		code, out, errOut := runCommand(t, env(nil), args...)
		if code != exitOK || out != "1 thread compared with the index, 0 corrections\n" || errOut != "" {
			t.Errorf("%v: %d %q %q", args, code, out, errOut)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if code, _, errOut := runCommand(t, env(nil), "check", "--index", missing); code == exitOK ||
		!strings.Contains(errOut, "there is no store at ") {
		t.Errorf("a store that is not there: %d %q", code, errOut)
	}
}
