package statecheck

// Looking things up in the code of a package, before anything about states is known: the
// functions that are called, the variables that keep their first value.

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// source is the code of one package.
type source struct {
	pass  *analysis.Pass
	files []*ast.File // without tests
	// inits are the only values of variables that are never changed.
	inits map[types.Object]ast.Expr
	decls map[types.Object]*ast.FuncDecl
}

// usesStates reports whether the package refers to anything in package state. A package
// can use another's keys without importing package state.
func (c *source) usesStates() bool {
	for _, obj := range c.pass.TypesInfo.Uses {
		if obj.Pkg() != nil && pathOf(obj.Pkg()) == statePath {
			return true
		}
	}
	return false
}

// pathOf returns a package's path without the suffix of variants built for tests.
func pathOf(p *types.Package) string {
	path, _, _ := strings.Cut(p.Path(), " [")
	return path
}

// typeName returns a type as code in this package would write it.
func (c *source) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.pass.Pkg {
			return ""
		}
		return p.Name()
	})
}

// calls reports whether the call is to this function of package state, or to this
// method of one of its types.
func (c *source) calls(call *ast.CallExpr, receiver string, names ...string) bool {
	fn := typeutil.StaticCallee(c.pass.TypesInfo, call)
	if fn == nil || fn.Pkg() == nil || pathOf(fn.Pkg()) != statePath {
		return false
	}
	if receiverName(fn) != receiver {
		return false
	}
	for _, name := range names {
		if fn.Name() == name {
			return true
		}
	}
	return false
}

func receiverName(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	t := types.Unalias(recv.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	name := ""
	if named, ok := t.(*types.Named); ok {
		name = named.Obj().Name()
	}
	return name
}

// field returns the value of a field in a struct literal; nil if it is not there.
func (c *source) field(lit *ast.CompositeLit, name string) ast.Expr {
	st, isStruct := c.pass.TypesInfo.TypeOf(lit).Underlying().(*types.Struct)
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		} else if isStruct && st.Field(i).Name() == name {
			return e
		}
	}
	return nil
}

// follow returns the value of a variable that has only one, or else the expression.
func (c *source) follow(e ast.Expr) ast.Expr {
	e = ast.Unparen(e)
	if id, ok := e.(*ast.Ident); ok {
		if init := c.inits[c.pass.TypesInfo.ObjectOf(id)]; init != nil {
			return ast.Unparen(init)
		}
	}
	return e
}

// findValues finds the variables that keep their first value, and all functions.
func (c *source) findValues() (map[types.Object]ast.Expr, map[types.Object]*ast.FuncDecl) {
	inits, decls := map[types.Object]ast.Expr{}, map[types.Object]*ast.FuncDecl{}
	changed := map[types.Object]bool{}
	for _, f := range c.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				decls[c.pass.TypesInfo.Defs[n.Name]] = n
			case *ast.ValueSpec:
				if len(n.Names) == len(n.Values) {
					for i, id := range n.Names {
						inits[c.pass.TypesInfo.Defs[id]] = n.Values[i]
					}
				}
			case *ast.AssignStmt:
				c.noteAssign(n, inits, changed)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					changed[c.root(n.X)] = true
				}
			}
			return true
		})
	}
	for obj := range changed {
		delete(inits, obj)
	}
	return inits, decls
}

func (c *source) noteAssign(n *ast.AssignStmt, inits map[types.Object]ast.Expr, changed map[types.Object]bool) {
	for i, lhs := range n.Lhs {
		id, _ := lhs.(*ast.Ident)
		switch {
		case id == nil || c.pass.TypesInfo.Defs[id] == nil:
			changed[c.root(lhs)] = true
		case len(n.Lhs) == len(n.Rhs):
			inits[c.pass.TypesInfo.Defs[id]] = n.Rhs[i]
		}
	}
}

// root returns the variable that an expression starts with; nil if there is none.
func (c *source) root(e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return c.pass.TypesInfo.ObjectOf(x)
		case *ast.SelectorExpr:
			if c.pass.TypesInfo.Selections[x] == nil {
				return c.pass.TypesInfo.ObjectOf(x.Sel)
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// params returns the parameters of a function that is known here.
func (c *source) params(e ast.Expr) *ast.FieldList {
	if lit, ok := c.follow(e).(*ast.FuncLit); ok {
		return lit.Type.Params
	}
	var id *ast.Ident
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return nil
	}
	if decl := c.decls[c.pass.TypesInfo.Uses[id]]; decl != nil {
		return decl.Type.Params
	}
	return nil
}

// library returns the name of the standard library's function that is called, with its
// package; "" for others.
func (c *source) library(call *ast.CallExpr) string {
	switch fn := typeutil.Callee(c.pass.TypesInfo, call).(type) {
	case *types.Builtin:
		return fn.Name()
	case *types.Func:
		if fn.Pkg() != nil && fn.Signature().Recv() == nil {
			return fn.Pkg().Path() + "." + fn.Name()
		}
	}
	return ""
}

func (c *source) isBasic(e ast.Expr) bool {
	_, ok := c.pass.TypesInfo.TypeOf(e).Underlying().(*types.Basic)
	return ok
}

// text returns an expression as it is written, on one line.
func written(e ast.Expr) string {
	return strings.Join(strings.Fields(types.ExprString(e)), " ")
}
