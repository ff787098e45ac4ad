package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPapers: docs/papers.md names a counterpart for every case of the papers, and
// each of them is there.
func TestPapers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "papers.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	section := ""
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		last := strings.Trim(strings.TrimSpace(cells[len(cells)-1]), "`")
		if !strings.HasPrefix(line, "| ") ||
			!strings.Contains(last, ".Test") && !strings.HasPrefix(last, "storetest: ") {
			continue
		}
		rows[section]++
		if !found(t, root, last) {
			t.Errorf("docs/papers.md: %q has the counterpart %q, which is not there", strings.TrimSpace(cells[0]), last)
		}
	}
	for section, want := range map[string]int{
		"Unit tests (21)": 21, "Integration tests (11)": 11, "Pending writes (11)": 11,
		"The limitations that the paper lists (8)": 8,
		"Paper 1, schema versioning: tests (10)":   10, "Paper 1: what else it promises (9)": 9,
		"Paper 3, the container: tests (3)": 3, "Paper 3: what else it promises (8)": 8,
		"Paper 4, direct properties: what it promises (7)":          7,
		"Paper 5, middleware owns its state: what it promises (10)": 10,
	} {
		if rows[section] != want {
			t.Errorf("docs/papers.md, %q: %d rows, want %d", section, rows[section], want)
		}
	}
}

// found looks for a test function (holdfast is the root package), or for a case of the
// conformance suite.
func found(t *testing.T, root, name string) bool {
	t.Helper()
	folder, what := filepath.Join(root, "agenttest", "storetest"), ""
	if suite, ok := strings.CutPrefix(name, "storetest: "); ok {
		what = regexp.QuoteMeta(`"` + suite + `":`)
	} else {
		at := strings.LastIndex(name, ".")
		folder, what = filepath.Join(root, strings.TrimPrefix(name[:at], "holdfast")),
			`(?m)^func `+regexp.QuoteMeta(name[at+1:])+`\(`
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s: no files, %v", folder, err)
	}
	pattern := regexp.MustCompile(what)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if pattern.Match(b) {
			return true
		}
	}
	return false
}
