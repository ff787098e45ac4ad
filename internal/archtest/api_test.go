package archtest

import (
	"errors"
	"flag"
	"fmt"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The public API is committed as text, a file for each public package, so that a change
// of it is a change that reviewers see. TestAPI compares; "make api" writes the files.

var update = flag.Bool("update", false, "write api/*.txt as the code is")

// maxRootNames is how many exported names the root package may have: what one reader can
// learn. Names that only some need belong to a package of theirs.
const maxRootNames = 110

// publicPackages are the packages that users can import, without the commands and the
// examples.
func publicPackages(t *testing.T) []*code {
	t.Helper()
	var public []*code
	for _, c := range modulePackages(t) {
		folders := strings.Split(c.name, "/")
		if !c.again && c.types.Name() != "main" && folders[0] != "examples" && !slices.Contains(folders, "internal") {
			public = append(public, c)
		}
	}
	return public
}

// TestAPI: the public API is what api/*.txt says.
func TestAPI(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root, "api")
	known := map[string]bool{}
	for _, c := range publicPackages(t) {
		file := filepath.Join(folder, apiFile(c))
		known[filepath.Base(file)] = true
		now := "package " + c.types.Path() + "\n" + strings.Join(api(c.types), "\n") + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		committed, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if string(committed) != now {
			t.Errorf(`the public API of %s is not what api/%s says:
%s
If that is meant, run "make api" and say in CHANGELOG.md what users have to change.`, c.types.Path(), apiFile(c),
				changes(string(committed), now))
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch {
		case known[filepath.Base(file)]:
		case !*update:
			t.Errorf("api/%s is of no public package; if that is meant, run \"make api\"", filepath.Base(file))
		default:
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRootNames: the root package has few names.
func TestRootNames(t *testing.T) {
	t.Parallel()
	for _, c := range publicPackages(t) {
		n := 0
		for _, name := range c.types.Scope().Names() {
			if c.types.Scope().Lookup(name).Exported() {
				n++
			}
		}
		t.Logf("%3d %s", n, c.types.Path())
		if c.name == "" && n > maxRootNames {
			t.Errorf("the root package has %d exported names, at most %d are allowed: give what only some "+
				"need a package of its own", n, maxRootNames)
		}
	}
}

// apiFile is the name of a package's file in the folder api.
func apiFile(c *code) string {
	if c.name == "" {
		return c.types.Name() + ".txt"
	}
	return strings.ReplaceAll(c.name, "/", "-") + ".txt"
}

// changes are the lines that only one of two texts has.
func changes(before, now string) string {
	var all []string
	had, has := strings.Split(before, "\n"), strings.Split(now, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range has {
		if !slices.Contains(had, line) {
			all = append(all, "+ "+line)
		}
	}
	return strings.Join(all, "\n")
}

// api has a line for everything in p that a program can name, in the order of the names,
// with the fields and methods of a type below it.
func api(p *types.Package) []string {
	// Types of other packages are written with the package's name, but internal ones with
	// their path, since nobody can name those.
	qualifier := func(other *types.Package) string {
		switch {
		case other == p:
			return ""
		case strings.Contains(other.Path(), "/internal/"):
			return strings.TrimPrefix(other.Path(), module+"/")
		}
		return other.Name()
	}
	var lines []string
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			lines = append(lines, fmt.Sprintf("%s = %s", types.ObjectString(obj, qualifier), obj.Val().ExactString()))
		case *types.TypeName:
			lines = append(lines, typeLines(obj, qualifier)...)
		default:
			lines = append(lines, types.ObjectString(obj, qualifier))
		}
	}
	return lines
}

// typeLines has a line for a type, and one for each of its exported fields and methods.
func typeLines(obj *types.TypeName, q types.Qualifier) []string {
	if obj.IsAlias() {
		return []string{types.ObjectString(obj, q)}
	}
	named := obj.Type().(*types.Named)
	head := "type " + types.TypeString(named, q)
	var lines []string
	switch u := named.Underlying().(type) {
	case *types.Struct:
		head += " struct"
		for f := range u.Fields() {
			switch {
			case f.Embedded() && f.Exported():
				lines = append(lines, head+", embedded "+types.TypeString(f.Type(), q))
			case f.Exported():
				lines = append(lines, head+", "+f.Name()+" "+types.TypeString(f.Type(), q))
			}
		}
	case *types.Interface:
		head += " interface"
		for e := range u.EmbeddedTypes() {
			lines = append(lines, head+", embedded "+types.TypeString(e, q))
		}
		for m := range u.ExplicitMethods() {
			if m.Exported() {
				lines = append(lines, head+", "+m.Name()+signature(m, q))
			} else {
				lines = append(lines, head+", and methods that only this module has")
			}
		}
	default:
		head += " " + types.TypeString(u, q)
	}
	for m := range named.Methods() {
		if m.Exported() {
			lines = append(lines, "method ("+types.TypeString(m.Signature().Recv().Type(), q)+") "+m.Name()+
				signature(m, q))
		}
	}
	slices.Sort(lines)
	return append([]string{head}, slices.Compact(lines)...)
}

// signature is a function's parameters and results.
func signature(f *types.Func, q types.Qualifier) string {
	return strings.TrimPrefix(types.TypeString(f.Signature(), q), "func")
}

// TestAPISeen: every kind of name has its line, and what is not exported has none.
func TestAPISeen(t *testing.T) {
	t.Parallel()
	got := strings.Join(api(fixture(t, "api").types), "\n")
	const want = `type Alias = Distance
type Box[T any] struct
method (*Box[T]) Open() T
type Box[T any] struct, Size Distance
type Box[T any] struct, embedded Named
var Default Named
type Distance int
method (Distance) String() string
const Far Distance = 9
func Make[T any](first T, more ...T) (*Box[T], error)
type Named interface
type Named interface, Name() string
type Named interface, and methods that only this module has
type Visit func(*Box[int]) bool`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := changes("a\nb\nc", "a\nc\nd"), "- b\n+ d"; got != want {
		t.Errorf("the change is %q, want %q", got, want)
	}
}
