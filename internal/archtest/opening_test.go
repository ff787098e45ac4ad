package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// minOpeningLines is how long a file may be without a paragraph that opens it.
const minOpeningLines = 150

// TestOpenings: a file that does not fit on a screen or two says first what it is for, in
// the package comment or in one of its own above the first declaration.
func TestOpenings(t *testing.T) {
	t.Parallel()
	n := 0
	eachSource(t, root, func(short string, fset *token.FileSet, f *ast.File) {
		if lines := fset.File(f.Package).LineCount(); lines > minOpeningLines {
			n++
			if !opens(f) {
				t.Errorf("%s has %d lines and no paragraph at its beginning: say above the first "+
					"declaration what the file is for", short, lines)
			}
		}
	})
	t.Logf("%d files have more than %d lines", n, minOpeningLines)
}

// opens reports whether a file has a package comment, or one before its first
// declaration that belongs to the file as a whole.
func opens(f *ast.File) bool {
	if f.Doc.Text() != "" {
		return true
	}
	end := f.FileEnd
	var first *ast.CommentGroup // of the first declaration
	var imports []*ast.CommentGroup
	for _, i := range f.Imports {
		imports = append(imports, i.Comment)
	}
	for _, d := range f.Decls {
		if i, ok := d.(*ast.GenDecl); ok && i.Tok == token.IMPORT {
			for _, g := range f.Comments {
				if i.Pos() < g.Pos() && g.Pos() < i.End() {
					imports = append(imports, g)
				}
			}
			continue
		}
		end = d.Pos()
		switch d := d.(type) {
		case *ast.FuncDecl:
			first = d.Doc
		case *ast.GenDecl:
			first = d.Doc
		}
		break
	}
	for _, g := range f.Comments {
		if g != first && !slices.Contains(imports, g) && g.Pos() > f.Name.End() && g.End() < end && g.Text() != "" {
			return true
		}
	}
	return false
}

// TestOpeningsSeen: the comment of a declaration does not open a file, and neither does
// one behind it or between imports.
func TestOpeningsSeen(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		source string
		want   bool
	}{
		{"// Package p is for tests.\npackage p\n\nvar a int\n", true},
		{"package p\n\nimport \"fmt\"\n\n// What the file is for.\n\n// a is documented.\nvar a = fmt.Sprint()\n",
			true},
		{"package p\n\n// What the file is for.\n\nvar a int\n", true},
		{"package p\n\n// What the file is for.\n\nimport \"fmt\"\n\nfunc f() { fmt.Sprint() }\n", true},
		{"package p\n\n// a is documented.\nvar a int\n\n// Behind it.\n\nvar b int\n", false},
		{"package p\n\nimport (\n\t// Nobody looks here.\n\n\t\"fmt\"\n)\n\nvar a = fmt.Sprint()\n", false},
		{"package p\n\nimport \"fmt\" // for Sprint\n\nfunc f() { fmt.Sprint() }\n", false},
		{"//go:build linux\n\npackage p\n\nvar a int\n", false},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), fmt.Sprint(i, ".go"), c.source,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := opens(f); got != c.want {
			t.Errorf("%v, want %v for\n%s", got, c.want, c.source)
		}
	}
}
