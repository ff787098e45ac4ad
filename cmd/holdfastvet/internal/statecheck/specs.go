package statecheck

// Finding what to check: the calls of state.Register, and the type, name and redaction of
// each state.

import (
	"go/ast"
	"go/constant"
	"go/types"
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
