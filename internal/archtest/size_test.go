package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a reader can take in at once. The code keeps well below these limits; they
// are here so that it stays there.
const (
	maxMethods = 50 // of a type

	maxFuncLines, p95FuncLines = 80, 35
	maxFileLines, p95FileLines = 700, 400
)

// TestMethods: a type with more methods than anybody remembers is several types.
func TestMethods(t *testing.T) {
	t.Parallel()
	for _, c := range modulePackages(t) {
		if c.again {
			continue
		}
		for _, m := range methodsOf(c) {
			if m.n > maxMethods/2 {
				t.Log(m)
			}
			if m.n > maxMethods {
				t.Errorf(
					"%v; at most %d are allowed: find the fields that only some of the methods use, and give them a type of their own",
					m,
					maxMethods,
				)
			}
		}
	}
}

// TestMethodsSeen: the methods of a type are counted, wherever they are declared.
func TestMethodsSeen(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(methodsOf(fixture(t, "cycle")))
	if want := "[cycle/high.go:5: tower has 1 methods]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// measured is a type, function or file, and how large it is.
type measured struct {
	what string
	n    int
}

func (m measured) String() string { return fmt.Sprintf(m.what, m.n) }

func methodsOf(c *code) []measured {
	var all []measured
	for _, name := range c.types.Scope().Names() {
		obj := c.types.Scope().Lookup(name)
		named, ok := obj.Type().(*types.Named)
		if !ok || !isType(obj) || obj.(*types.TypeName).IsAlias() {
			continue
		}
		n := named.NumMethods()
		if i, ok := named.Underlying().(*types.Interface); ok {
			n = i.NumMethods()
		}
		if n > 0 {
			all = append(
				all,
				measured{what: filepath.Join(c.name, c.where(obj.Pos())) + ": " + name + " has %d methods", n: n},
			)
		}
	}
	return all
}

// TestLines: functions and files are short, all of them, and nearly all of them are
// much shorter.
func TestLines(t *testing.T) {
	t.Parallel()
	functions, files := sources(t, "../..")
	limit(t, "functions", functions, p95FuncLines, maxFuncLines)
	limit(t, "files", files, p95FileLines, maxFileLines)
}

func limit(t *testing.T, what string, all []measured, p95, longest int) {
	t.Helper()
	slices.SortFunc(
		all,
		func(a, b measured) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.what, b.what)) },
	)
	got := all[len(all)/20].n
	t.Logf("%d %s: p50 %d lines, p95 %d, max %d", len(all), what, all[len(all)/2].n, got, all[0].n)
	for _, m := range all {
		if m.n > longest {
			t.Errorf("%v, at most %d are allowed", m, longest)
		}
	}
	if got > p95 {
		t.Errorf(
			"19 of 20 %s must have at most %d lines, but one in twenty has %d or more; the longest are %v",
			what,
			p95,
			got,
			all[:20],
		)
	}
}

// sources measures the functions and files that eachSource finds.
func sources(t *testing.T, root string) (functions, files []measured) {
	t.Helper()
	eachSource(t, root, func(short string, fset *token.FileSet, f *ast.File) {
		files = append(files, measured{what: short + " has %d lines", n: fset.File(f.Package).LineCount()})
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
			if fn.Doc != nil {
				first = fset.Position(fn.Type.Func).Line
			}
			functions = append(
				functions,
				measured{what: fmt.Sprintf("%s:%d: %s has %%d lines", short, first, fn.Name.Name), n: last - first + 1},
			)
		}
	})
	return functions, files
}

// eachSource calls visit with every file that people have written: all but tests and
// what is generated, for all systems and with all tags. short is its path from root.
func eachSource(t *testing.T, root string, visit func(short string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		visit(strings.TrimPrefix(filepath.ToSlash(path), root+"/"), fset, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
