package archtest

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder, as seen from here.
const root = "../.."

// table returns the rows of the table on a page of the project that has this header.
// Cells come without the backticks around them.
func table(t *testing.T, page string, header ...string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for line := range strings.Lines(read(t, filepath.Join(root, page))) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if inside {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case !inside:
			inside = slices.Equal(cells, header)
		case len(cells) != len(header):
			t.Errorf("%s: this row has %d cells, want %d: %s", page, len(cells), len(header), line)
		case strings.Trim(cells[0], ":-") != "":
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table with the header %q", page, header)
	}
	return rows
}

// symbolNames are what declarations declare, as the pages name it: "Func", "Type",
// "Type.Method", "Const".
func symbolNames(declarations []ast.Decl) []string {
	var all []string
	for _, d := range declarations {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if of := receiver(d); of != "" {
				name = of + "." + name
			}
			all = append(all, name)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					all = append(all, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						all = append(all, name.Name)
					}
				}
			}
		}
	}
	return all
}

var (
	// goFile matches the name of a Go file, with or without its folders. One that has
	// angle brackets in it is an example.
	goFile = regexp.MustCompile("`([\\w./<>-]+\\.go)`")
	// testName matches the name of a test, and testFunc a test.
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestPagesNameFiles: the files and tests that the pages for contributors name are
// there.
func TestPagesNameFiles(t *testing.T) {
	t.Parallel()
	tests := allTests(t)
	for _, page := range []string{"CONTRIBUTING.md", "docs/architecture.md"} {
		text := read(t, filepath.Join(root, page))
		named := goFile.FindAllStringSubmatch(text, -1)
		if len(named) == 0 {
			t.Errorf("%s names no file", page)
		}
		for _, m := range named {
			if strings.Contains(m[1], "<") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s names a file that is not there; give its path from the project's root: %v", page, err)
			}
		}
		for _, name := range testName.FindAllString(text, -1) {
			if !tests[name] {
				t.Errorf("%s names %s, and there is no such test", page, name)
			}
		}
	}
}

// allTests are the names of the tests of all packages.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			for _, m := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
				tests[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
