package statecheck

// Finding what to check: the calls of state.Register, the type, name and redaction of each
// state, and variables whose value is known.

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// spec is one call of state.Register.
type spec struct {
	call *ast.CallExpr
	typ  types.Type
	// nameAt is the expression of the name; the call if it is not known.
	nameAt ast.Expr
	// name is the state's name, if it is a constant that is known here.
	name  string
	named bool
	// redact is the function in that field, if it is known.
	redact ast.Expr
}

// title returns how messages refer to the state.
func (c *checker) title(s *spec) string {
	if s.name != "" {
		return "the state " + s.name
	}
	return "the state " + c.typeName(s.typ)
}

// typeName returns a type as code in this package would write it.
func (c *checker) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.pass.Pkg {
			return ""
		}
		return p.Name()
	})
}

func (c *checker) findSpecs() []*spec {
	var specs []*spec
	for _, f := range c.files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 || !c.calls(call, "", "Register") {
				return true
			}
			if s := c.specOf(call); s != nil {
				specs = append(specs, s)
			}
			return true
		})
	}
	return specs
}

// calls reports whether the call is to this function of package state, or to this
// method of one of its types.
func (c *checker) calls(call *ast.CallExpr, receiver string, names ...string) bool {
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

// specOf reads the argument of a call of state.Register; nil if it is no Spec.
func (c *checker) specOf(call *ast.CallExpr) (s *spec) {
	if named, ok := types.Unalias(c.pass.TypesInfo.TypeOf(call.Args[0])).(*types.Named); ok &&
		named.TypeArgs().Len() == 1 {
		s = c.readSpec(call, named.TypeArgs().At(0))
	}
	return s
}

func (c *checker) readSpec(call *ast.CallExpr, of types.Type) *spec {
	arg := call.Args[0]
	s := &spec{call: call, typ: of, nameAt: call}
	lit, ok := c.follow(arg).(*ast.CompositeLit)
	if !ok {
		return s
	}
	s.redact = c.field(lit, "Redact")
	name := c.field(lit, "Name")
	if name == nil {
		s.named = true
		return s
	}
	s.nameAt = name
	if v := c.pass.TypesInfo.Types[name].Value; v != nil && v.Kind() == constant.String {
		s.name, s.named = constant.StringVal(v), true
	}
	return s
}

// field returns the value of a field in a struct literal; nil if it is not there.
func (c *checker) field(lit *ast.CompositeLit, name string) ast.Expr {
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
func (c *checker) follow(e ast.Expr) ast.Expr {
	e = ast.Unparen(e)
	if id, ok := e.(*ast.Ident); ok {
		if init := c.inits[c.pass.TypesInfo.ObjectOf(id)]; init != nil {
			return ast.Unparen(init)
		}
	}
	return e
}

// findValues finds the variables that keep their first value, and all functions.
func (c *checker) findValues() (map[types.Object]ast.Expr, map[types.Object]*ast.FuncDecl) {
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

func (c *checker) noteAssign(n *ast.AssignStmt, inits map[types.Object]ast.Expr, changed map[types.Object]bool) {
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
func (c *checker) root(e ast.Expr) types.Object {
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
func (c *checker) params(e ast.Expr) *ast.FieldList {
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
