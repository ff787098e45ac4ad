package archtest

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// glossaryWords must be in the glossary of docs/architecture.md: the words of the
// design, and those that once had several meanings.
var glossaryWords = []string{
	"thread", "incarnation", "run", "iteration", "record", "head", "checkpoint", "pending write", "intent", "fence",
	"answer", "archive", "batch", "clean up", "completion", "history", "inspect", "settle", "state", "takeover", "view",
}

// glossaryHeader is that of the glossary. A word in its third column is what the first one
// is not called.
var glossaryHeader = []string{"word", "meaning", "not", "type"}

// maxGlossary is how many words a newcomer is asked to learn.
const maxGlossary = 50

// TestGlossary: each word names one exported declaration, and nothing has two names.
func TestGlossary(t *testing.T) {
	t.Parallel()
	packages := map[string]*types.Package{}
	for _, c := range modulePackages(t) {
		if other := packages[c.types.Name()]; other != nil && !c.again && other.Name() != "main" {
			t.Errorf("%s and %s have the same name", other.Path(), c.types.Path())
		}
		packages[c.types.Name()] = c.types
	}
	rows := table(t, "docs/architecture.md", glossaryHeader...)
	if len(rows) > maxGlossary {
		t.Errorf("the glossary has %d words, at most %d: say the new one in plain English", len(rows), maxGlossary)
	}
	for _, p := range glossaryProblems(rows, packages) {
		t.Error(p)
	}
	for _, word := range glossaryWords {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == word }) {
			t.Errorf("the glossary lacks %q", word)
		}
	}
}

func glossaryProblems(rows [][]string, packages map[string]*types.Package) (problems []string) {
	said := map[string]string{} // what a word or a symbol stands for
	for _, row := range rows {
		word, meaning, symbol := row[0], row[1], row[3]
		if !exported(packages, symbol) {
			problems = append(problems,
				fmt.Sprintf("the glossary explains %q by %s, which no package exports", word, symbol))
		}
		if meaning == "" || word != strings.ToLower(word) {
			problems = append(problems, fmt.Sprintf("%q must be in lower case, and have a meaning", word))
		}
		for _, one := range []string{word, symbol} {
			if other, twice := said[one]; twice {
				problems = append(problems, fmt.Sprintf("%s has two meanings: %q and %q", one, other, meaning))
			}
			said[one] = meaning
		}
	}
	return problems
}

// exported reports whether there is such a declaration: package.Name or, for a
// method, package.Type.Method.
func exported(packages map[string]*types.Package, symbol string) bool {
	parts := strings.Split(symbol, ".")
	if len(parts) < 2 || len(parts) > 3 || packages[parts[0]] == nil {
		return false
	}
	obj := packages[parts[0]].Scope().Lookup(parts[1])
	if obj == nil || !obj.Exported() {
		return false
	}
	if len(parts) == 2 {
		return true
	}
	method, _, _ := types.LookupFieldOrMethod(obj.Type(), true, obj.Pkg(), parts[2])
	_, ok := method.(*types.Func)
	return ok && method.Exported()
}

// TestGlossarySeen: the test can fail.
func TestGlossarySeen(t *testing.T) {
	t.Parallel()
	word := func(name string) *types.Package {
		p := types.NewPackage("words", "words")
		p.Scope().Insert(types.NewTypeName(0, p, name, types.Typ[types.Int]))
		return p
	}
	for _, c := range []struct {
		rows [][]string
		want string
	}{
		{[][]string{{"run", "one", "", "words.Run"}}, ""},
		{[][]string{{"walk", "one", "", "words.Walk"}},
			`the glossary explains "walk" by words.Walk, which no package exports`},
		{[][]string{{"run", "one", "", "other.Run"}},
			`the glossary explains "run" by other.Run, which no package exports`},
		{[][]string{{"run", "one", "", "words.Run.Stop"}},
			`the glossary explains "run" by words.Run.Stop, which no package exports`},
		{[][]string{{"run", "one", "", "words.Run"}, {"go", "two", "", "words.Run"}},
			`words.Run has two meanings: "one" and "two"`},
		{[][]string{{"Run", "", "", "words.Run"}}, `"Run" must be in lower case, and have a meaning`},
	} {
		got := strings.Join(glossaryProblems(c.rows, map[string]*types.Package{"words": word("Run")}), "\n")
		if got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.rows, got, c.want)
		}
	}
}
