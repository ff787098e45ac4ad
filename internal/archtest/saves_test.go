package archtest

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// savers may give a commit its state or its listings: package thread does it for everybody, and the
// suite of the stores makes commits that no engine would.
var savers = []string{"internal/thread", "agenttest/storetest"}

// setters returns where a package sets the field State or Listings of a commit itself.
func setters(p *code) (found []string) {
	isCommit := func(t types.Type) bool {
		if ptr, is := t.(*types.Pointer); is {
			t = ptr.Elem()
		}
		named, is := t.(*types.Named)
		return is && named.Obj().Name() == "Commit" && named.Obj().Pkg() != nil &&
			named.Obj().Pkg().Path() == module+"/store"
	}
	names := []string{"State", "Listings"}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					s, is := to.(*ast.SelectorExpr)
					if is && slices.Contains(names, s.Sel.Name) && isCommit(p.info.TypeOf(s.X)) {
						found = append(found, p.where(s.Pos()))
					}
				}
			case *ast.CompositeLit:
				if !isCommit(p.info.TypeOf(n)) {
					return true
				}
				for _, e := range n.Elts {
					kv, is := e.(*ast.KeyValueExpr)
					if !is {
						continue
					}
					if key, is := kv.Key.(*ast.Ident); is && slices.Contains(names, key.Name) {
						found = append(found, p.where(kv.Pos()))
					}
				}
			}
			return true
		})
	}
	return found
}

// TestSaves: a commit that stores a state says in which lists of the index the thread is then,
// because both are set in one place.
func TestSaves(t *testing.T) {
	t.Parallel()
	for _, p := range modulePackages(t) {
		if !slices.Contains(savers, p.name) {
			for _, at := range setters(p) {
				t.Errorf("%s: %s sets the state or the listings of a commit: thread.Save does it", p.name, at)
			}
		}
	}
}

// TestSavesSeen: the rule sees each way of setting them.
func TestSavesSeen(t *testing.T) {
	t.Parallel()
	got := setters(fixture(t, "saves", module+"/store"))
	if want := []string{"saves.go:7", "saves.go:8", "saves.go:9", "saves.go:10"}; !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}
