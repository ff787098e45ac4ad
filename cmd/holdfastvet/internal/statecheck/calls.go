package statecheck

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// hand marks the parameters through which the call passes a state's value to a function
// of this package.
func (f *flow) hand(call *ast.CallExpr) {
	fn := typeutil.StaticCallee(f.pass.TypesInfo, call)
	if fn == nil {
		return
	}
	decl := f.decls[fn.Origin()]
	if decl == nil {
		return
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && decl.Recv != nil {
		if recv := names(decl.Recv); len(recv) == 1 && !f.addressed(sel, fn) {
			f.give(recv[0], sel.X)
		}
	}
	for i, param := range names(decl.Type.Params) {
		last := i == fn.Signature().Params().Len()-1
		if i < len(call.Args) && !(last && fn.Signature().Variadic()) {
			f.give(param, call.Args[i])
		}
	}
}

// addressed reports whether a method gets the address of a variable: through that it
// writes into the caller's copy.
func (f *flow) addressed(sel *ast.SelectorExpr, fn *types.Func) bool {
	_, pointer := fn.Signature().Recv().Type().Underlying().(*types.Pointer)
	_, already := f.pass.TypesInfo.TypeOf(sel.X).Underlying().(*types.Pointer)
	return pointer && !already
}

// give marks a parameter. It does not mark a struct of which a part was copied: the
// function may write into just that part.
func (f *flow) give(param *ast.Ident, value ast.Expr) {
	if f.standing(value) != shared {
		return
	}
	if from, ok := f.place(value); ok {
		for p, s := range f.env {
			if s != shared && p.within(from) {
				return
			}
		}
	}
	if obj := f.pass.TypesInfo.Defs[param]; obj != nil {
		f.values[obj] = true
	}
}

// names returns the names of parameters, in order. Either all parameters have a name or
// none has.
func names(params *ast.FieldList) []*ast.Ident {
	var out []*ast.Ident
	if params != nil {
		for _, field := range params.List {
			out = append(out, field.Names...)
		}
	}
	return out
}
