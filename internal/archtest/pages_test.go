package archtest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder, as seen from here.
const root = "../.."

// table returns the rows of the table on a page of the project that has this header.
// Cells come without the backticks around them.
func table(t *testing.T, page string, header ...string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for line := range strings.Lines(read(t, filepath.Join(root, page))) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case !inside:
			inside = slices.Equal(cells, header)
		case len(cells) != len(header):
			t.Errorf("%s: this row has %d cells, want %d: %s", page, len(cells), len(header), line)
		case strings.Trim(cells[0], ":-") != "":
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table with the header %q", page, header)
	}
	return rows
}
