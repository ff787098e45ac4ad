package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSalvageCommand: check finds a list of tables that ends early, and exits with 1; the
// threads are saved to another folder, and the damaged one stays as it is.
func TestSalvageCommand(t *testing.T) {
	path := madeStore(t)
	base := t.TempDir()
	code, out, errOut := runCommand(t, env(nil), "salvage", path, filepath.Join(base, "whole"))
	if code != exitOK || !strings.HasPrefix(out, "1 thread saved to ") || !strings.Contains(out, ", 0 not whole; ") ||
		errOut != "" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	lists, err := filepath.Glob(filepath.Join(path, "MANIFEST-*"))
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	for _, list := range lists {
		info, err := os.Stat(list)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(list, info.Size()-5); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errOut = runCommand(t, env(nil), "check", path)
	if code != exitFailed || !strings.Contains(out, "store_damaged: ") || !strings.Contains(out, "ends early") ||
		!strings.Contains(out, "1 problem") {
		t.Errorf("check: %d %q %q", code, out, errOut)
	}
	saved := filepath.Join(base, "saved")
	code, out, errOut = runCommand(t, env(nil), "salvage", path, saved)
	if code != exitFailed || !strings.HasPrefix(out, "list MANIFEST-") ||
		!strings.Contains(out, "1 thread saved to "+saved+", 1 not whole; ") || errOut != "" {
		t.Errorf("salvage: %d %q %q", code, out, errOut)
	}
	if code, out, errOut := runCommand(t, env(nil), "check", saved); code != exitOK ||
		out != "1 thread checked, 0 problems\n" {
		t.Errorf("what was saved: %d %q %q", code, out, errOut)
	}
	if code, _, errOut := runCommand(t, env(nil), "salvage", path, saved); code != exitUsage ||
		!strings.Contains(errOut, "new directory") {
		t.Errorf("to a folder that is there: %d %q", code, errOut)
	}
}
