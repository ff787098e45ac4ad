package statecheck

// HF006: whether the key of a state can be in the States of a middleware.

import (
	"fmt"
	"go/ast"
	"go/types"
)

// checkListed reports states whose keys are only read and written. A key that is used
// in any other way, in a States list or as an argument, a result or an element, may be
// listed somewhere, and so may an exported one.
func (c *checker) checkListed(specs []*spec) {
	registers := map[*ast.CallExpr]*spec{}
	for _, s := range specs {
		registers[s.call] = s
	}
	keys := map[types.Object]*spec{}
	methods := map[*ast.Ident]bool{} // the identifiers before the dot of a method
	for _, f := range c.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				c.noteKeys(keys, registers, identifiers(n.Names), n.Values)
			case *ast.AssignStmt:
				c.noteKeys(keys, registers, n.Lhs, n.Rhs)
			case *ast.SelectorExpr:
				switch x := ast.Unparen(n.X).(type) {
				case *ast.Ident:
					methods[x] = true
				case *ast.CallExpr: // nobody else can have this key
					if s := registers[x]; s != nil {
						c.reportUnlisted(s, "the key")
					}
				}
			}
			return true
		})
	}
	for _, f := range c.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !methods[id] {
				delete(keys, c.pass.TypesInfo.Uses[id])
			}
			return true
		})
	}
	for key, s := range keys {
		c.reportUnlisted(s, key.Name())
	}
}

// noteKeys notes the variables that are declared with a new key and that only this
// package can use.
func (c *checker) noteKeys(keys map[types.Object]*spec, registers map[*ast.CallExpr]*spec, names, values []ast.Expr) {
	if len(names) != len(values) {
		return
	}
	for i, name := range names {
		id, isName := name.(*ast.Ident)
		call, isCall := ast.Unparen(values[i]).(*ast.CallExpr)
		if !isName || !isCall || registers[call] == nil || id.Name == "_" {
			continue
		}
		key := c.pass.TypesInfo.Defs[id]
		if key == nil || key.Exported() && key.Parent() == c.pass.Pkg.Scope() && c.pass.Pkg.Name() != "main" {
			continue
		}
		keys[key] = registers[call]
	}
}

func identifiers(names []*ast.Ident) []ast.Expr {
	out := make([]ast.Expr, len(names))
	for i, id := range names {
		out[i] = id
	}
	return out
}

func (c *checker) reportUnlisted(s *spec, key string) {
	c.report(codeUnlisted, s.call, fmt.Sprintf("no middleware lists %s. Its scope and its redaction could not apply, "+
		"so reading or writing it in a run fails. List %s in the Middleware.States of its owner.", c.title(s), key))
}
