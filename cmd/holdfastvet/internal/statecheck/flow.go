package statecheck

// HF005, part one: follows the values of states through the statements of each function,
// to find maps, slices and pointers that are changed in place.

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"

	"golang.org/x/tools/go/analysis"
)

// flow follows the values of states through one function, line by line. It errs on the
// side of silence: what it cannot follow belongs to no state.
type flow struct {
	*source
	report func(code string, at ast.Node, text string, fixes ...analysis.SuggestedFix)
	env    env
	// values are the parameters that hold the value of a state.
	values map[types.Object]bool
}

// checkInPlace finds maps, slices and pointers of states that are changed in place. It
// goes through the package silently until it knows which functions get values of states,
// and then once more to report.
func (c *checker) checkInPlace(specs []*spec) {
	values := c.valueParams(specs)
	c.quiet = true
	for known := -1; known < len(values); {
		known = len(values)
		c.followAll(values)
	}
	c.quiet = false
	c.followAll(values)
}

func (c *checker) followAll(values map[types.Object]bool) {
	for _, file := range c.files {
		for _, decl := range file.Decls {
			f := &flow{source: c.source, report: c.report, env: env{}, values: values}
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Body != nil {
					f.receive(d.Recv)
					f.function(d.Type, d.Body)
				}
			case *ast.GenDecl:
				f.expr(d) // functions in the values of variables
			}
		}
	}
}

// valueParams finds the parameters of functions that are passed to Update or are a
// state's Redact.
func (c *checker) valueParams(specs []*spec) map[types.Object]bool {
	values := map[types.Object]bool{}
	note := func(fn ast.Expr) {
		if params := c.params(fn); params != nil && len(params.List) > 0 && len(params.List[0].Names) > 0 {
			values[c.pass.TypesInfo.Defs[params.List[0].Names[0]]] = true
		}
	}
	for _, s := range specs {
		if s.redact != nil {
			note(s.redact)
		}
	}
	for _, file := range c.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && c.calls(call, "Key", "Update") {
				note(call.Args[1])
			}
			return true
		})
	}
	return values
}

func (f *flow) function(t *ast.FuncType, body *ast.BlockStmt) {
	f.receive(t.Params)
	f.block(body.List)
}

// receive takes over what is known about parameters.
func (f *flow) receive(params *ast.FieldList) {
	for _, name := range names(params) {
		if obj := f.pass.TypesInfo.Defs[name]; f.values[obj] {
			f.env.set(place{root: obj}, shared)
		}
	}
}

// exit says where execution continues after statements.
type exit int

const (
	stays   exit = iota // after them
	jumps               // elsewhere in the function
	returns             // nowhere
)

func (f *flow) block(list []ast.Stmt) (how exit) {
	for _, s := range list {
		how = f.stmt(s)
	}
	return how
}

func (f *flow) stmt(s ast.Stmt) exit {
	switch s := s.(type) {
	case *ast.AssignStmt:
		f.assign(s)
	case *ast.IncDecStmt:
		f.expr(s.X)
		f.write(s, s.X)
	case *ast.DeclStmt:
		f.declare(s)
	case *ast.BlockStmt:
		return f.block(s.List)
	case *ast.LabeledStmt:
		return f.stmt(s.Stmt)
	case *ast.IfStmt:
		return f.ifelse(s)
	case *ast.ForStmt:
		f.optional(s.Init)
		f.expr(s.Cond)
		f.block(s.Body.List)
		f.optional(s.Post)
	case *ast.RangeStmt:
		f.ranges(s)
	case *ast.SwitchStmt:
		f.optional(s.Init)
		f.expr(s.Tag)
		f.cases(s.Body)
	case *ast.TypeSwitchStmt:
		f.optional(s.Init)
		f.stmt(s.Assign)
		f.cases(s.Body)
	case *ast.SelectStmt:
		f.cases(s.Body)
	case *ast.ReturnStmt:
		f.expr(s)
		return returns
	case *ast.BranchStmt:
		return jumps
	default:
		f.expr(s)
		if isPanic(s) {
			return returns
		}
	}
	return stays
}

func (f *flow) optional(s ast.Stmt) {
	if s != nil {
		f.stmt(s)
	}
}

func isPanic(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

func (f *flow) ifelse(s *ast.IfStmt) exit {
	f.optional(s.Init)
	f.expr(s.Cond)
	before := f.env
	f.env = maps.Clone(before)
	thenHow, elseHow := f.block(s.Body.List), stays
	then := f.env
	f.env = maps.Clone(before)
	if s.Else != nil {
		elseHow = f.stmt(s.Else)
	} else if empty, ok := f.nilCheck(s.Cond); ok {
		// Making it if it is nil says nothing about the case that it is not.
		then.set(empty, before.get(empty))
	}
	if thenHow == stays {
		f.env = join(before, then, f.env, elseHow)
	} else {
		f.env = join(before, f.env, then, thenHow)
	}
	return min(thenHow, elseHow)
}

// nilCheck returns the place of x in "x == nil" and "len(x) == 0".
func (f *flow) nilCheck(cond ast.Expr) (place, bool) {
	b, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if !ok || b.Op != token.EQL {
		return place{}, false
	}
	if call, ok := b.X.(*ast.CallExpr); ok && len(call.Args) == 1 {
		return f.place(call.Args[0])
	}
	return f.place(b.X)
}

// cases follows each case from the start of the switch.
func (f *flow) cases(body *ast.BlockStmt) {
	before := maps.Clone(f.env)
	after := f.env
	for _, s := range body.List {
		f.env = maps.Clone(before)
		how := stays
		switch s := s.(type) {
		case *ast.CaseClause:
			for _, e := range s.List {
				f.expr(e)
			}
			how = f.block(s.Body)
		case *ast.CommClause:
			f.optional(s.Comm)
			how = f.block(s.Body)
		}
		after = join(before, after, f.env, how)
	}
	f.env = after
}

func (f *flow) ranges(s *ast.RangeStmt) {
	f.expr(s.X)
	of := f.standing(s.X)
	for _, v := range []ast.Expr{s.Key, s.Value} {
		if v != nil {
			f.bind(v, nil, of)
		}
	}
	f.block(s.Body.List)
}

func (f *flow) declare(s *ast.DeclStmt) {
	f.expr(s.Decl)
	var specs []ast.Spec
	if gen, ok := s.Decl.(*ast.GenDecl); ok { // nothing else is declared in a function
		specs = gen.Specs
	}
	for _, sp := range specs {
		if v, ok := sp.(*ast.ValueSpec); ok {
			lhs := make([]ast.Expr, len(v.Names))
			for i, name := range v.Names {
				lhs[i] = name
			}
			f.bindAll(lhs, v.Values)
		}
	}
}

func (f *flow) assign(s *ast.AssignStmt) {
	for _, e := range s.Rhs {
		f.expr(e)
	}
	for _, e := range s.Lhs {
		f.expr(e)
		f.write(s, e)
	}
	if s.Tok == token.ASSIGN || s.Tok == token.DEFINE {
		f.bindAll(s.Lhs, s.Rhs)
	}
}

// bindAll gives variables and fields their new values.
func (f *flow) bindAll(lhs, rhs []ast.Expr) {
	if len(lhs) == len(rhs) {
		standings := make([]standing, len(rhs))
		for i, e := range rhs {
			standings[i] = f.standing(e)
		}
		for i, e := range lhs {
			f.bind(e, rhs[i], standings[i])
		}
		return
	}
	for i, e := range lhs {
		s := own
		if i == 0 && len(rhs) == 1 {
			s = f.standing(rhs[0])
		}
		f.bind(e, nil, s)
	}
}

// bind gives one variable or field a value, field by field where they are known.
func (f *flow) bind(lhs, value ast.Expr, s standing) {
	to, ok := f.place(lhs)
	if !ok || to.root == nil {
		return
	}
	if value != nil {
		if from, ok := f.place(value); ok {
			f.env.copy(to, from)
			return
		}
	}
	f.env.set(to, s)
	if lit, ok := value.(*ast.CompositeLit); ok {
		f.bindFields(to, lit)
	}
}

// bindFields gives the fields of a new struct the values in its literal.
func (f *flow) bindFields(to place, lit *ast.CompositeLit) {
	st, ok := f.pass.TypesInfo.TypeOf(lit).Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i := range st.NumFields() {
		if v := f.field(lit, st.Field(i).Name()); v != nil && f.standing(v) > own {
			f.env.set(fieldOf(to, i), f.standing(v))
		}
	}
}
