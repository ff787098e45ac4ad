package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// waitPackage has the ways to wait for what sends no signal.
const waitPackage = "internal/testkit/wait"

// sleeps has what sleeps in tests and test kits by the real clock: a test that sleeps is slow on
// a quick machine and fails on a slow one. In the bubbles of testing/synctest, sleeping costs
// nothing and is exact. A function counts as part of a bubble if one that makes bubbles, or
// calls a function that does, leads to it by names of its package.
func sleeps(files []source) []measured {
	folders := map[string][]source{}
	for _, s := range files {
		dir := path.Dir(s.short)
		if dir != waitPackage && (s.test || strings.Contains(dir, "testkit") || strings.HasPrefix(dir, "agenttest")) {
			folders[dir] = append(folders[dir], s)
		}
	}
	var all []measured
	for _, files := range folders {
		bubbles := inBubbles(files)
		for _, s := range files {
			for _, d := range s.file.Decls {
				if !bubbles[nameOf(d)] {
					all = append(all, sleepsIn(s, d)...)
				}
			}
		}
	}
	return all
}

func sleepsIn(s source, d ast.Decl) (all []measured) {
	ast.Inspect(d, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "time", "Sleep") {
			at := fmt.Sprintf("%s:%d", s.short, s.fset.Position(n.Pos()).Line)
			all = append(all, measured{key: at, n: 1, complaint: func() string {
				return at + ": the test sleeps by the real clock: wait for a signal, run it in a bubble of " +
					"testing/synctest, or, if other processes have no signal to give, use " + waitPackage
			}})
		}
		return true
	})
	return all
}

func isSelector(e ast.Expr, x, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == x
}

// inBubbles returns the declarations of a folder that bubbles lead to.
func inBubbles(files []source) map[string]bool {
	uses := map[string][]string{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			name := nameOf(d)
			uses[name] = append(uses[name], named(d)...)
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				for _, of := range named(fn.Recv) {
					uses[of] = append(uses[of], name)
				}
			}
		}
	}
	makers := map[string]bool{"synctest": true}
	for name, used := range uses {
		if slices.Contains(used, "synctest") && !strings.HasPrefix(name, "Test") {
			makers[name] = true
		}
	}
	var next []string
	for name, used := range uses {
		if slices.ContainsFunc(used, func(u string) bool { return makers[u] }) {
			next = append(next, name)
		}
	}
	in := map[string]bool{}
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		if _, ok := uses[name]; ok && !in[name] {
			in[name] = true
			next = append(next, uses[name]...)
		}
	}
	return in
}

// named returns all names in a part of a file.
func named(n ast.Node) (all []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			all = append(all, id.Name)
		}
		return true
	})
	return all
}

// nameOf is the name of a function, method, variable or type.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				return spec.Names[0].Name
			case *ast.TypeSpec:
				return spec.Name.Name
			}
		}
	}
	return ""
}

// TestSleepsSeen: a sleep is refused where no bubble leads to it, in functions and methods.
func TestSleepsSeen(t *testing.T) {
	t.Parallel()
	const why = ": the test sleeps by the real clock: wait for a signal, run it in a bubble of testing/synctest, or, " +
		"if other processes have no signal to give, use internal/testkit/wait"
	wantRefused(t, gauge{}, sleeps(sources(t, "testdata/sleeps")), "sleeps_test.go:20"+why+"\n"+"sleeps_test.go:25"+why)
}
