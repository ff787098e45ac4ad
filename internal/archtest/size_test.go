package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits of what a reader can take in at once. The code keeps well below these limits;
// they are here so that it stays there.
const (
	maxStatements              = 45 // of a function
	p95FuncLines               = 35
	maxFileLines, p95FileLines = 700, 400
)

// TestLines: files are short, all of them, and nearly all files and functions are
// much shorter.
func TestLines(t *testing.T) {
	t.Parallel()
	functions, files := lines(sources(t, root))
	typical(t, "functions", functions, p95FuncLines)
	typical(t, "files", files, p95FileLines)
	for _, f := range files {
		if f.n > maxFileLines {
			t.Errorf("%s has %d lines, at most %d are allowed", f.key, f.n, maxFileLines)
		}
	}
}

// typical sorts the measured, the longest first, and fails if more than one in twenty
// is longer than p95.
func typical(t *testing.T, what string, all []measured, p95 int) {
	t.Helper()
	slices.SortFunc(all, func(a, b measured) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.key, b.key))
	})
	got := all[len(all)/20].n
	t.Logf("%d %s: p50 %d lines, p95 %d, max %d", len(all), what, all[len(all)/2].n, got, all[0].n)
	if got <= p95 {
		return
	}
	t.Errorf("19 of 20 %s must have at most %d lines, but one in twenty has %d or more; the longest are", what, p95,
		got)
	for _, m := range all[:20] {
		t.Logf("%s: %d lines", m.key, m.n)
	}
}

// lines measures functions and files in lines.
func lines(all []source) (functions, files []measured) {
	for _, s := range all {
		if s.test {
			continue
		}
		files = append(files, measured{key: s.short, n: s.fset.File(s.file.Package).LineCount()})
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				first, last := s.fset.Position(fn.Type.Func).Line, s.fset.Position(fn.End()).Line
				functions = append(functions,
					measured{key: fmt.Sprintf("%s:%d: %s", s.short, first, functionName(fn)), n: last - first + 1})
			}
		}
	}
	return functions, files
}

// statements measures functions in what they do, however it is spread over lines: each
// statement counts, those of function literals included. Blocks and labels only hold
// statements. A literal outside functions is a function too.
func statements(all []source) []measured {
	var functions []measured
	for _, s := range all {
		if s.test {
			continue
		}
		count := func(name string, fn ast.Node) {
			at := fmt.Sprintf("%s:%d", s.short, s.fset.Position(fn.Pos()).Line)
			m := measured{key: path.Join(path.Dir(s.short), name), n: countStatements(fn)}
			m.complaint = func() string {
				return fmt.Sprintf("%s: %s has %d statements, at most %d are allowed: give the steps that it "+
					"takes names of their own", at, name, m.n, maxStatements)
			}
			functions = append(functions, m)
		}
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				count(functionName(fn), fn)
				continue
			}
			for _, spec := range decl.(*ast.GenDecl).Specs {
				ast.Inspect(spec, func(n ast.Node) bool {
					literal, ok := n.(*ast.FuncLit)
					if ok {
						count(spec.(*ast.ValueSpec).Names[0].Name, literal)
					}
					return !ok
				})
			}
		}
	}
	return functions
}

func countStatements(fn ast.Node) int {
	n := 0
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.BlockStmt, *ast.LabeledStmt, *ast.EmptyStmt:
		case ast.Stmt:
			n++
		}
		return true
	})
	return n
}

// functionName is a function's name, behind that of its receiver's type.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// TestStatementsSeen: it does not help to write a function on few lines, or into
// another, or into a variable.
func TestStatementsSeen(t *testing.T) {
	t.Parallel()
	const why = ", at most 45 are allowed: give the steps that it takes names of their own"
	const want = "statements.go:6: counter.packed has 8 statements" + why + "\n" +
		"statements.go:15: nested has 7 statements" + why + "\n" +
		"statements.go:27: held has 6 statements" + why
	wantRefused(t, gauge{limit: 5}, statements(sources(t, "testdata/statements")), want)
}

// source is a file that people have written.
type source struct {
	short string // its path from the root
	test  bool
	text  []byte
	fset  *token.FileSet
	file  *ast.File
}

// sources are the files that people have written: all but what is generated, for all
// systems and with all tags.
func sources(t *testing.T, root string) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		notOurs := name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && notOurs:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		short := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		all = append(all, source{short: short, test: strings.HasSuffix(name, "_test.go"), text: text, fset: fset,
			file: f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// eachSource calls visit with every file of sources that is no test.
func eachSource(t *testing.T, root string, visit func(short string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	for _, s := range sources(t, root) {
		if !s.test {
			visit(s.short, s.fset, s.file)
		}
	}
}
