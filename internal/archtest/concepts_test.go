package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// CONTRIBUTING.md has a table of concepts, each with the file and the symbol at which
// to begin to read. A newcomer who only sees the names of the files should guess most
// of it, so nearly every file must be named after its concept.
const (
	concepts     = 25 // rows of the table
	minTellNames = 22 // of them have a file whose name holds a word of the concept
)

// TestConcepts: every symbol is in the file that the table names, and the names of
// the files tell what is in them.
func TestConcepts(t *testing.T) {
	t.Parallel()
	rows := table(t, "CONTRIBUTING.md", "concept", "file", "symbol")
	if len(rows) != concepts {
		t.Errorf("CONTRIBUTING.md has %d concepts, want %d", len(rows), concepts)
	}
	tell, seen := 0, map[string]bool{}
	var silent []string
	for _, row := range rows {
		concept, file, symbol := row[0], row[1], row[2]
		checkConcept(t, concept, file, symbol)
		if seen[concept] || seen[file+" "+symbol] {
			t.Errorf("CONTRIBUTING.md has %q or its symbol twice", concept)
		}
		seen[concept], seen[file+" "+symbol] = true, true
		if tells(file, concept) {
			tell++
		} else {
			silent = append(silent, concept+": "+file)
		}
	}
	t.Logf("%d of %d files are named after their concept; the others are\n%s", tell, len(rows),
		strings.Join(silent, "\n"))
	if tell < minTellNames {
		t.Errorf("%d files are named after their concept, want %d: rename files, or move the symbol to "+
			"where it would be looked for", tell, minTellNames)
	}
}

// checkConcept says where a symbol is, if it is not where the table says.
func checkConcept(t *testing.T, concept, file, symbol string) {
	t.Helper()
	folder := path.Dir(file)
	files := parse(t, folder)
	if slices.Contains(symbolNames(files[path.Base(file)]), symbol) {
		return
	}
	for name, declarations := range files {
		if slices.Contains(symbolNames(declarations), symbol) {
			t.Errorf("CONTRIBUTING.md, %q: %s is in %s, not in %s", concept, symbol, path.Join(folder, name), file)
			return
		}
	}
	t.Errorf("CONTRIBUTING.md, %q: there is no %s in %s", concept, symbol, folder)
}

// tells reports whether the name of a file holds a word of the concept. "ratelimit"
// holds the words "rate limit".
func tells(file, concept string) bool {
	words := strings.FieldsFunc(strings.ToLower(concept), func(r rune) bool { return !unicode.IsLetter(r) })
	known := map[string]bool{}
	for i, w := range words {
		known[stem(w)] = true
		if i > 0 {
			known[stem(words[i-1]+w)] = true
		}
	}
	name := strings.TrimSuffix(path.Base(file), ".go")
	return slices.ContainsFunc(strings.Split(name, "_"), func(w string) bool { return known[stem(w)] })
}

// endings are what inflects an English word, the longest first.
var endings = []string{"ions", "ings", "ers", "als", "ion", "ing", "er", "al", "es", "ed", "s", "e"}

// stem cuts off what inflects a word: "lease" and "leases" have one stem, and so have
// "migrate" and "migration".
func stem(word string) string {
	for _, end := range endings {
		if rest, ok := strings.CutSuffix(word, end); ok && len(rest) > 2 {
			return rest
		}
	}
	return word
}

// TestConceptWords: what counts as a word of a concept, and what does not.
func TestConceptWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, concept string
		want          bool
	}{
		{"internal/owner/takeover.go", "takeover of a dead process's run", true},
		{"internal/watch/snapshot.go", "snapshots for a late watcher", true},
		{"internal/decide/decide.go", "what a 409 interrupted is decided by", true},
		{"middleware/ratelimit.go", "rate limit", true},
		{"state_migration.go", "running a state migration", true},
		{"internal/loop/supersede.go", "takeover of a dead process's run", false},
		{"internal/limit/limiter.go", "rate limited", true},
		{"internal/decide/errors.go", "what decides", false}, // the folder does not count
		{"platelimit.go", "rate limit", false},
	} {
		if got := tells(c.file, c.concept); got != c.want {
			t.Errorf("%s tells %q: %v, want %v", c.file, c.concept, got, c.want)
		}
	}
}
