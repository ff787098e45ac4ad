package archtest

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDocumented: every exported name of the public packages has a doc comment, and so
// has every exported field and every method of an interface.
func TestDocumented(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range publicPackages(t) {
		if !slices.ContainsFunc(c.files, func(f *ast.File) bool { return f.Doc != nil }) {
			t.Errorf("package %s has no package comment", c.types.Path())
		}
		exported, bare := documented(c)
		n += exported
		for _, what := range bare {
			t.Errorf("%s has no doc comment: say what it does, its unit, and what its zero value means",
				filepath.Join(c.name, what))
		}
	}
	t.Logf("%d names, fields and methods", n)
}

// TestDocumentedSeen: what has no comment is found, wherever it is.
func TestDocumentedSeen(t *testing.T) {
	t.Parallel()
	_, bare := documented(fixture(t, "api"))
	want := []string{"api.go:25: Named.Name", "api.go:29: Visit", "api.go:34: Box.Size", "api.go:38: Box.Open"}
	if !slices.Equal(bare, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(bare, "\n"), strings.Join(want, "\n"))
	}
}

// documented counts a package's exported names, with fields and methods, and returns
// those without a comment. One comment above a group, or above a line, is about all of
// its names.
func documented(c *code) (exported int, bare []string) {
	note := func(name *ast.Ident, of string, comments ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		exported++
		if !slices.ContainsFunc(comments, func(g *ast.CommentGroup) bool { return g.Text() != "" }) {
			bare = append(bare, c.where(name.Pos())+": "+of+name.Name)
		}
	}
	for _, f := range c.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch of := receiver(d); {
				case of == "":
					note(d.Name, "", d.Doc)
				case token.IsExported(of):
					note(d.Name, of+".", d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							note(name, "", spec.Doc, spec.Comment, d.Doc)
						}
					case *ast.TypeSpec:
						note(spec.Name, "", spec.Doc, d.Doc)
						if spec.Name.IsExported() {
							fields(spec.Type, spec.Name.Name+".", note)
						}
					}
				}
			}
		}
	}
	return exported, bare
}

// fields notes the fields of a struct, those of structs in it, and the methods of an
// interface. An embedded type is documented where it is declared.
func fields(of ast.Expr, name string, note func(name *ast.Ident, of string, comments ...*ast.CommentGroup)) {
	var list *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			note(n, name, f.Doc, f.Comment)
			if n.IsExported() {
				fields(f.Type, name+n.Name+".", note)
			}
		}
	}
}
