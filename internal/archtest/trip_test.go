package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// A reader who wants to know what happens to a thread whose owner has died reads the function
// that takes it over, and every function that it hands the thread to. They must lie in few
// files.
//
// The trip follows what the function is handed: its parameters that are pointers.
// They are cargo, and so is what is reached or made from cargo and is a pointer
// itself: a field, a variable, a struct that holds it, what a function returns that
// was handed cargo. A file is entered when a function in it is handed cargo, as an
// argument or as the receiver. Calls through interfaces end the trip, and so does a
// go statement: what runs from then on is the run. The root package and those of its
// words are no stations, since their types are what all others speak in.
const (
	tripPackage = "internal/owner"
	tripStart   = "takeovers.takeOver"
	maxTrip     = 10
)

func TestTakeoverTrip(t *testing.T) {
	t.Parallel()
	all := modulePackages(t)
	tr := newTrip(all)
	var start *types.Func
	for fn, d := range tr.declaredFunc {
		if d.in.name == tripPackage && d.name() == tripStart {
			start = fn
		}
	}
	if start == nil {
		t.Fatalf("%s has no %s: name the function that takes a thread over in internal/archtest", tripPackage,
			tripStart)
	}
	tr.follow(start)
	if files := tr.stations(); len(files) > maxTrip {
		t.Errorf("%s enters %d files, at most %d are allowed. Read first, in one place; then "+
			"decide; then commit once.\n%s", tripStart, len(files), maxTrip, tr)
	} else {
		t.Logf("%s enters %d files:\n%s", tripStart, len(files), tr)
	}
}

// TestTakeoverTripSeen: each of the fixture's files says whether it is entered.
func TestTakeoverTripSeen(t *testing.T) {
	t.Parallel()
	tr := newTrip([]*code{fixture(t, "trip")})
	for fn, d := range tr.declaredFunc {
		if d.name() == "engine.start" {
			tr.follow(fn)
		}
	}
	const want = `trip/argument.go: argument
trip/literal.go: literal
trip/receiver.go: parcel.receiver
trip/result.go: result
trip/start.go: engine.start engine.next engine.wrapped`
	if got := tr.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// trip follows cargo through the calls that pass it on.
type trip struct {
	declaredFunc map[*types.Func]declaredFunc
	vehicle      types.Type            // the receiver of the first function is not what it is about
	cargo        map[types.Object]bool // variables that hold it
	entered      []*types.Func         // in the order of the calls
	learned      bool                  // there is more cargo than before
}

// declaredFunc is a function with a body.
type declaredFunc struct {
	in   *code
	decl *ast.FuncDecl
}

// name is the function's name, with its receiver's type.
func (d declaredFunc) name() string {
	if d.decl.Recv == nil {
		return d.decl.Name.Name
	}
	recv := d.decl.Recv.List[0].Type
	if p, ok := recv.(*ast.StarExpr); ok {
		recv = p.X
	}
	if i, ok := recv.(*ast.IndexExpr); ok {
		recv = i.X
	}
	if id, ok := recv.(*ast.Ident); ok {
		return id.Name + "." + d.decl.Name.Name
	}
	return d.decl.Name.Name
}

// words are the packages that all others speak in.
var words = []string{"", "codes", "state", "store", "threads"}

func newTrip(all []*code) *trip {
	tr := &trip{declaredFunc: map[*types.Func]declaredFunc{}, cargo: map[types.Object]bool{}}
	for _, c := range all {
		for _, f := range c.files {
			for _, d := range f.Decls {
				// A function that does nothing, as a crash point does in a server that is
				// shipped, is no station.
				if fn, ok := d.(*ast.FuncDecl); ok && !slices.Contains(words, c.name) && fn.Body != nil &&
					len(fn.Body.List) > 0 {
					tr.declaredFunc[c.info.Defs[fn.Name].(*types.Func)] = declaredFunc{c, fn}
				}
			}
		}
	}
	return tr
}

func (tr *trip) follow(start *types.Func) {
	if recv := start.Signature().Recv(); recv != nil {
		tr.vehicle = recv.Type()
	}
	for p := range start.Signature().Params().Variables() {
		tr.load(p)
	}
	for tr.learned = true; tr.learned; {
		tr.learned, tr.entered = false, nil
		tr.enter(start)
	}
}

// load makes a variable cargo, if it can be.
func (tr *trip) load(v types.Object) {
	if v != nil && tr.fits(v.Type()) && !tr.cargo[v] {
		tr.cargo[v], tr.learned = true, true
	}
}

// fits: only what is passed on by pointer can be followed.
func (tr *trip) fits(t types.Type) bool {
	if tuple, ok := t.(*types.Tuple); ok {
		return tuple.Len() > 0 && tr.fits(tuple.At(0).Type())
	}
	p, ok := t.Underlying().(*types.Pointer)
	if !ok || tr.vehicle != nil && types.Identical(p, tr.vehicle) {
		return false
	}
	named, ok := p.Elem().(*types.Named)
	return ok && !(named.Obj().Name() == "Error") // what is said about cargo is not cargo
}

// enter goes through a function that was handed cargo, and on to those that it calls.
func (tr *trip) enter(fn *types.Func) {
	d, ok := tr.declaredFunc[fn]
	if !ok || slices.Contains(tr.entered, fn) {
		return
	}
	tr.entered = append(tr.entered, fn)
	ast.Inspect(d.decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.AssignStmt:
			tr.assign(d.in.info, n)
		case *ast.CallExpr:
			tr.call(d.in.info, n)
		}
		return true
	})
}

func (tr *trip) assign(info *types.Info, a *ast.AssignStmt) {
	for i, r := range a.Rhs {
		if id, ok := a.Lhs[i].(*ast.Ident); ok && tr.carries(info, r) {
			tr.load(info.ObjectOf(id))
		}
	}
}

func (tr *trip) call(info *types.Info, call *ast.CallExpr) {
	fn, recv := callee(info, call)
	if fn == nil {
		return
	}
	handed := false
	hand := func(param *types.Var, arg ast.Expr) {
		if arg != nil && param != nil && tr.carries(info, arg) {
			handed = true
			tr.load(param)
		}
	}
	sig := fn.Signature()
	hand(sig.Recv(), recv)
	for i, arg := range call.Args {
		if n := sig.Params().Len(); n > 0 {
			hand(sig.Params().At(min(i, n-1)), arg)
		}
	}
	if handed {
		tr.enter(fn)
	}
}

// callee is the function that a call names, and the value it is called on. Calls
// of function values and of interfaces name none.
func callee(info *types.Info, call *ast.CallExpr) (fn *types.Func, recv ast.Expr) {
	fun := ast.Unparen(call.Fun)
	if i, ok := fun.(*ast.IndexExpr); ok {
		fun = i.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		fn, _ = info.Uses[f].(*types.Func)
	case *ast.SelectorExpr:
		fn, _ = info.Uses[f.Sel].(*types.Func)
		recv = f.X
	}
	if fn == nil {
		return nil, nil
	}
	return fn.Origin(), recv
}

// carries reports whether an expression holds cargo.
func (tr *trip) carries(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return tr.cargo[info.Uses[e]]
	case *ast.SelectorExpr:
		s := info.Selections[e]
		return s != nil && s.Kind() == types.FieldVal && tr.fits(s.Type()) && tr.carries(info, e.X)
	case *ast.StarExpr:
		return tr.carries(info, e.X)
	case *ast.UnaryExpr:
		return tr.carries(info, e.X)
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				x = kv.Value
			}
			if tr.carries(info, x) {
				return true
			}
		}
	case *ast.CallExpr:
		fn, recv := callee(info, e)
		return fn != nil && tr.fits(info.TypeOf(e)) &&
			(recv != nil && tr.carries(info, recv) ||
				slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return tr.carries(info, a) }))
	}
	return false
}

// stations has the files that were entered, and the functions in them.
func (tr *trip) stations() map[string][]string {
	files := map[string][]string{}
	for _, fn := range tr.entered {
		d := tr.declaredFunc[fn]
		file := path.Join(d.in.name, d.in.file(d.decl.Pos()))
		files[file] = append(files[file], d.name())
	}
	return files
}

func (tr *trip) String() string {
	files := tr.stations()
	var lines []string
	for _, f := range slices.Sorted(maps.Keys(files)) {
		lines = append(lines, fmt.Sprintf("%s: %s", f, strings.Join(files[f], " ")))
	}
	return strings.Join(lines, "\n")
}
