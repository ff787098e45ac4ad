package archtest

// The language of the code: comments, and the texts that people read, open their sentences
// as the pages do.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestLanguageOfCode: the rules of the pages' sentences hold for comments, and for all texts
// of the code that no test is made of.
func TestLanguageOfCode(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, s := range sources(t, root) {
		if path.Base(s.short) != "comments_test.go" {
			found[path.Dir(s.short)] = append(found[path.Dir(s.short)], codeProblems(s)...)
		}
	}
	for dir, problems := range found {
		if len(problems) > overLanguage[dir] {
			t.Errorf("%s has %d sentences to mend, %d are on the list:\n%s", dir, len(problems), overLanguage[dir],
				strings.Join(problems, "\n"))
		}
	}
	for dir, n := range overLanguage {
		if len(found[dir]) < n {
			t.Errorf("%s is on the list with %d sentences and has %d: mend overLanguage", dir, n, len(found[dir]))
		}
	}
}

// codeProblems are what is wrong with the sentences in a file.
func codeProblems(s source) (problems []string) {
	problem := func(pos token.Pos, text string) {
		text = quoted.ReplaceAllString(text, "`code`")
		at := fmt.Sprintf("%s:%d: ", s.short, s.fset.Position(pos).Line)
		for _, found := range openings(text) {
			problems = append(problems, at+"begin the sentence with a plain subject: "+found)
		}
		for _, word := range shunned.FindAllString(text, -1) {
			problems = append(problems, fmt.Sprintf("%ssay it without %q", at, word))
		}
	}
	for _, g := range s.file.Comments {
		for _, paragraph := range strings.Split(g.Text(), "\n\n") {
			problem(g.Pos(), strings.Join(strings.Fields(paragraph), " "))
		}
	}
	if s.test {
		return problems
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				problem(l.Pos(), text)
			}
		}
		return true
	})
	return problems
}

// TestLanguageOfCodeSeen: the test can fail.
func TestLanguageOfCodeSeen(t *testing.T) {
	t.Parallel()
	const text = `// Package p is for whoever asks.
package p

// What it says. Who knows?
// Who waits here costs nothing.
const a = "Try anew."
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(codeProblems(source{short: "p.go", fset: fset, file: f}), "\n")
	want := `p.go:1: say it without "whoever"
p.go:4: begin the sentence with a plain subject: What it says
p.go:4: begin the sentence with a plain subject: Who waits here costs nothing
p.go:6: say it without "anew"`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
