package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stores are the packages that implement store.Store. A new one is a line here.
var stores = []string{
	"internal/filestore",
	"internal/memstore",
	"internal/redisstore",
}

// suite is where the stores are tested, in files of the same names.
const suite = "agenttest/storetest"

// roleFiles say in which file a store declares the methods of each interface.
var roleFiles = map[string]string{
	"Committer": "commit.go",
	"Reader":    "read.go",
	"Directory": "directory.go",
	"Index":     "index.go",
	"Presence":  "presence.go",
	"Notifier":  "notify.go",
	"Ledger":    "ledger.go",
	"Hints":     "hints.go",
	"Durable":   "durability.go",
	"Store":     "store.go", // what it asks for beside its roles
}

// TestStoreFiles: a reader who knows one store finds their way in all of them, because the
// same thing is in the file of the same name.
func TestStoreFiles(t *testing.T) {
	t.Parallel()
	methods := map[string][]string{} // by interface
	for _, i := range interfaces(t, "../../store") {
		methods[i.name] = i.methods
		if i.name == "Store" {
			checkRoles(t, i.embedded)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(roleFiles)) {
		if len(methods[role]) == 0 {
			t.Errorf("roleFiles has %s, but package store declares no such interface with methods of its own", role)
		}
	}
	for _, store := range stores {
		checkStore(t, store, methods)
	}
}

// checkRoles: every role of Store has a file name, and tests in a file of that name.
func checkRoles(t *testing.T, roles []string) {
	t.Helper()
	tests := parse(t, suite)
	for _, role := range roles {
		switch file := roleFiles[role]; {
		case file == "":
			t.Errorf("holdfast.Store has the role %s, which has no file name yet: choose one in roleFiles, "+
				"the same for all stores", role)
		case tests[file] == nil:
			t.Errorf("%s has no %s: the tests of holdfast.%s belong in a file named as in the stores", suite, file,
				role)
		}
	}
}

// checkStore reports the methods that are not in the file of their role.
func checkStore(t *testing.T, store string, methods map[string][]string) {
	t.Helper()
	files := parse(t, store)
	found := map[string]string{} // the file of each method of Store
	for name, declarations := range files {
		for _, d := range declarations {
			if f, ok := d.(*ast.FuncDecl); ok && receiver(f) == "Store" {
				found[f.Name.Name] = name
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(roleFiles)) {
		want := roleFiles[role]
		if files[want] == nil {
			t.Errorf("%s has no %s: every store keeps the methods of holdfast.%s (%s) in a file of this name", store,
				want, role, strings.Join(methods[role], ", "))
			continue
		}
		for _, m := range methods[role] {
			switch found[m] {
			case want:
			case "":
				t.Errorf("%s: declare %s in %s; it is a method of holdfast.%s, and an embedded field that brings "+
					"it hides where it is done", store, m, want, role)
			default:
				t.Errorf("%s: move %s from %s to %s, where every store has the methods of holdfast.%s", store, m,
					found[m], want, role)
			}
		}
	}
}

// declared is an interface: the methods and the interfaces that it names itself.
type declared struct {
	name              string
	methods, embedded []string
}

// interfaces are those that the package in the folder declares.
func interfaces(t *testing.T, folder string) []declared {
	t.Helper()
	var all []declared
	for _, declarations := range parseFolder(t, folder) {
		for _, d := range declarations {
			general, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				named, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if i, ok := named.Type.(*ast.InterfaceType); ok {
					all = append(all, declare(named.Name.Name, i))
				}
			}
		}
	}
	return all
}

func declare(name string, i *ast.InterfaceType) declared {
	d := declared{name: name}
	for _, field := range i.Methods.List {
		for _, method := range field.Names {
			d.methods = append(d.methods, method.Name)
		}
		if other, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 {
			d.embedded = append(d.embedded, other.Name)
		}
	}
	return d
}

// receiver is the type that f is a method of; "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if named, ok := of.(*ast.Ident); ok {
		return named.Name
	}
	return ""
}

// parse returns the declarations of a package of ours, by file, without its tests.
func parse(t *testing.T, name string) map[string][]ast.Decl {
	t.Helper()
	return parseFolder(t, filepath.Join("..", "..", filepath.FromSlash(name)))
}

func parseFolder(t *testing.T, folder string) map[string][]ast.Decl {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no Go files, %v", folder, err)
	}
	files := map[string][]ast.Decl{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = file.Decls
	}
	return files
}
