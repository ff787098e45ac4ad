package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var unraced = regexp.MustCompile(`(?m)^UNRACED = (.+)$`)

// TestUnraced: the packages whose tests run without the race detector start no goroutine, in their
// tests neither.
func TestUnraced(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := unraced.FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no list of them")
	}
	for name := range strings.SplitSeq(string(list[1]), "|") {
		folder := filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(name, "$$")))
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files, %v", folder, err)
		}
		for _, file := range files {
			wantNoGoroutine(t, file)
		}
	}
}

func wantNoGoroutine(t *testing.T, path string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		_, starts := n.(*ast.GoStmt)
		if call, is := n.(*ast.CallExpr); is {
			method, _ := call.Fun.(*ast.SelectorExpr)
			starts = method != nil && method.Sel.Name == "Go" // as that of a sync.WaitGroup
		}
		if starts {
			t.Errorf("%s: a goroutine is started, so the race detector must watch it", set.Position(n.Pos()))
		}
		return true
	})
}
