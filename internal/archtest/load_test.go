package archtest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// code is a package with its types: what the tests about the inside of packages
// look at.
type code struct {
	name  string // without the module's path, "" for the root package
	again bool   // it is in the list already, compiled in another way
	fset  *token.FileSet
	files []*ast.File // the compiled ones, without tests
	types *types.Package
	info  *types.Info
}

// where is a position as people write it: the file without its folder, and the line.
func (c *code) where(pos token.Pos) string {
	p := c.fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
}

// file is the name of the file in which pos lies, without its folder.
func (c *code) file(pos token.Pos) string {
	return filepath.Base(c.fset.Position(pos).Filename)
}

// loadModule checks the types of all packages of the module, once for all tests.
var loadModule = sync.OnceValues(func() ([]*code, error) {
	listed, err := goList(nil, module+"/...")
	if err != nil {
		return nil, err
	}
	l, err := newLoader(listed)
	if err != nil {
		return nil, err
	}
	var all []*code
	for _, p := range listed {
		if len(p.GoFiles) == 0 {
			continue
		}
		if _, err := l.Import(p.ImportPath); err != nil {
			return nil, err
		}
		all = append(all, l.checked[p.ImportPath])
	}
	// The engine with its crash points has a file more.
	tagged, err := goList([]string{"-tags", "crashpoints"}, module+"/internal/loop")
	if err != nil {
		return nil, err
	}
	loop, err := l.check(tagged[0])
	if err != nil {
		return nil, err
	}
	loop.name, loop.again = loop.name+" with crashpoints", true
	return append(all, loop), nil
})

// modulePackages is loadModule for a test, which fails if the code does not compile.
func modulePackages(t *testing.T) []*code {
	t.Helper()
	all, err := loadModule()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// loader is an importer: it reads the module's packages from their source, and
// all others from what the compiler has exported.
type loader struct {
	fset     *token.FileSet
	listed   map[string]goPackage
	checked  map[string]*code
	compiled types.Importer
}

func newLoader(listed []goPackage) (*loader, error) {
	l := &loader{fset: token.NewFileSet(), listed: map[string]goPackage{}, checked: map[string]*code{}}
	var others []string
	for _, p := range listed {
		l.listed[p.ImportPath] = p
		for _, i := range p.Imports {
			if i != "unsafe" && !strings.HasPrefix(i, module) {
				others = append(others, i)
			}
		}
	}
	slices.Sort(others)
	if len(others) == 0 {
		return l, nil
	}
	exported, err := goList([]string{"-export"}, slices.Compact(others)...)
	if err != nil {
		return nil, err
	}
	export := map[string]string{}
	for _, p := range exported {
		export[p.ImportPath] = p.Export
	}
	l.compiled = importer.ForCompiler(l.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(export[path])
	})
	return l, nil
}

// Import implements [types.Importer].
func (l *loader) Import(path string) (*types.Package, error) {
	p, ours := l.listed[path]
	if !ours {
		return l.compiled.Import(path)
	}
	if l.checked[path] == nil {
		c, err := l.check(p)
		if err != nil {
			return nil, err
		}
		l.checked[path] = c
	}
	return l.checked[path].types, nil
}

func (l *loader) check(p goPackage) (*code, error) {
	c := &code{name: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"), fset: l.fset, info: &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(l.fset, filepath.Join(p.Dir, name), nil,
			parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	var err error
	c.types, err = (&types.Config{Importer: l}).Check(p.ImportPath, l.fset, c.files, c.info)
	return c, err
}

// fixture is a package of testdata. It imports none but the given packages of the module,
// what those import, and the standard library.
func fixture(t *testing.T, name string, ours ...string) *code {
	t.Helper()
	p := goPackage{ImportPath: name, Dir: filepath.Join("testdata", name)}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, e.Name()), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			p.Imports = append(p.Imports, strings.Trim(i.Path.Value, `"`))
		}
		p.GoFiles = append(p.GoFiles, e.Name())
	}
	listed := []goPackage{p}
	if len(ours) > 0 {
		deps, err := goList([]string{"-deps"}, ours...)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, slices.DeleteFunc(deps, func(p goPackage) bool {
			return !strings.HasPrefix(p.ImportPath, module)
		})...)
	}
	l, err := newLoader(listed)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.check(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func goList(flags []string, patterns ...string) ([]goPackage, error) {
	args := append([]string{"list", "-json=ImportPath,Dir,GoFiles,Imports,Export"}, flags...)
	out, err := exec.Command("go", append(args, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []goPackage
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}
