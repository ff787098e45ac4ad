package statecheck

// HF005, part two: what is known about each variable and field: whether the map, slice
// or pointer in it belongs to a state, and how branches change that.

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"strconv"
	"strings"
)

// standing says who owns the map, slice or pointer behind a value.
type standing int

const (
	none    standing = iota - 1 // there is none: it is nil
	own                         // nobody else has it, or nothing is known about it
	clipped                     // a state's slice without spare capacity: append copies it
	shared                      // it belongs to a state
)

// place is a variable, or a field in it: the indexes of the fields, each after a dot.
type place struct {
	root   types.Object
	fields string
}

// within reports whether p is a field inside other, at any depth.
func (p place) within(other place) bool {
	return p.root == other.root && strings.HasPrefix(p.fields, other.fields+".")
}

// fieldOf returns the place of the i-th field of a struct.
func fieldOf(p place, i int) place {
	p.fields += "." + strconv.Itoa(i)
	return p
}

// env is what is known about places. Facts about a struct hold for its fields too, unless
// something else is known about them.
type env map[place]standing

func (e env) get(p place) standing {
	for {
		if s, ok := e[p]; ok {
			return s
		}
		dot := strings.LastIndexByte(p.fields, '.')
		if dot < 0 {
			return own
		}
		p.fields = p.fields[:dot]
	}
}

// set records what holds for the place and everything in it.
func (e env) set(p place, s standing) {
	maps.DeleteFunc(e, func(other place, _ standing) bool { return other.within(p) })
	e[p] = s
}

// copy makes what is known about src hold for dst, field by field.
func (e env) copy(dst, src place) {
	parts := env{}
	for p, s := range e {
		if p.within(src) {
			parts[place{dst.root, dst.fields + strings.TrimPrefix(p.fields, src.fields)}] = s
		}
	}
	e.set(dst, e.get(src))
	maps.Copy(e, parts)
}

// merge joins what is known after two branches. A place that only one of them has changed
// counts as changed, so that a copy made where it is first needed is enough. A place that both
// have changed is shared if it is shared in one of them. Setting it to nil in one branch is
// not a copy for the other.
func merge(before, a, b env) env {
	out := env{}
	for _, side := range []env{a, b} {
		for p := range side {
			was, one, other := before.get(p), a.get(p), b.get(p)
			switch {
			case one == was && other != none:
				out[p] = other
			case other == was && one != none:
				out[p] = one
			default:
				out[p] = max(one, other)
			}
		}
	}
	return out
}

// join adds what is known at the end of a branch to what is known after others. Of a
// branch that jumps, only the copies that it made count: where it continues is not
// followed.
func join(before, after, branch env, how exit) env {
	switch how {
	case stays:
		return merge(before, after, branch)
	case jumps:
		out := maps.Clone(after)
		for p := range branch {
			if s := branch.get(p); s != none {
				out[p] = min(after.get(p), s)
			}
		}
		return out
	}
	return after
}

// place returns the place that an expression refers to.
func (f *flow) place(e ast.Expr) (place, bool) {
	info := f.pass.TypesInfo
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := info.ObjectOf(e).(*types.Var)
		return place{root: v}, ok
	case *ast.SelectorExpr:
		sel := info.Selections[e]
		if sel == nil || sel.Kind() != types.FieldVal {
			return place{}, false
		}
		p, ok := f.place(e.X)
		for _, i := range sel.Index() {
			p = fieldOf(p, i)
		}
		return p, ok
	}
	return place{}, false
}

// standing returns who owns the map, slice or pointer that an expression yields.
func (f *flow) standing(e ast.Expr) standing {
	if p, ok := f.place(e); ok {
		return f.env.get(p)
	}
	if f.pass.TypesInfo.Types[e].IsNil() {
		return none
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if f.pass.TypesInfo.Selections[e] != nil {
			return f.standing(e.X)
		}
	case *ast.IndexExpr:
		return f.standing(e.X)
	case *ast.SliceExpr:
		return f.slice(e)
	case *ast.StarExpr:
		return f.standing(e.X)
	case *ast.TypeAssertExpr:
		return f.standing(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.AND && f.inState(e.X) {
			return shared
		}
	case *ast.CallExpr:
		return f.call(e)
	}
	return own
}

func (f *flow) slice(e *ast.SliceExpr) standing {
	if isArray(f.pass.TypesInfo.TypeOf(e.X)) && !f.inState(e.X) {
		return own // the array is in the variable itself
	}
	s := f.standing(e.X)
	if e.Slice3 && s == shared {
		return clipped
	}
	return s
}

// call returns who owns the first result of a call.
func (f *flow) call(e *ast.CallExpr) standing {
	switch {
	case f.pass.TypesInfo.Types[e.Fun].IsType() && len(e.Args) == 1:
		if f.isBasic(e) || f.isBasic(e.Args[0]) {
			return own // a string and its bytes are copies
		}
		return f.standing(e.Args[0])
	case f.calls(e, "Key", "Get", "Load", "Update"):
		return shared
	}
	switch f.library(e) {
	case "slices.Clip":
		return min(f.standing(e.Args[0]), clipped)
	case "slices.Grow":
		return f.standing(e.Args[0])
	}
	return own
}

// inState reports whether an assignment to the expression would write into memory that
// belongs to a state: not into the variable itself, but into what it refers to.
func (f *flow) inState(e ast.Expr) bool {
	info := f.pass.TypesInfo
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		sel := info.Selections[e]
		if sel == nil || sel.Kind() != types.FieldVal {
			return false
		}
		if !sel.Indirect() {
			return f.inState(e.X)
		}
		if p, ok := f.place(e); ok {
			p.fields = p.fields[:strings.LastIndexByte(p.fields, '.')]
			return f.env.get(p) > own
		}
		return f.standing(e.X) > own
	case *ast.IndexExpr:
		if isArray(info.TypeOf(e.X)) {
			return f.inState(e.X)
		}
		return f.standing(e.X) > own
	case *ast.StarExpr:
		return f.standing(e.X) > own
	}
	return false
}

func isArray(t types.Type) bool {
	is := false
	if t != nil {
		_, is = t.Underlying().(*types.Array)
	}
	return is
}
