package statecheck

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"

	"golang.org/x/tools/go/analysis"
)

// The statements that change memory that a state holds: assignments, and calls of the standard
// library's functions that write into their arguments.

// inPlace are the standard library's functions that write into their first argument.
var inPlace = map[string]bool{
	"clear":                 true,
	"copy":                  true,
	"delete":                true,
	"maps.Copy":             true,
	"maps.DeleteFunc":       true,
	"maps.Insert":           true,
	"slices.Compact":        true,
	"slices.CompactFunc":    true,
	"slices.Delete":         true,
	"slices.DeleteFunc":     true,
	"slices.Replace":        true,
	"slices.Reverse":        true,
	"slices.Sort":           true,
	"slices.SortFunc":       true,
	"slices.SortStableFunc": true,
	"sort.Float64s":         true,
	"sort.Ints":             true,
	"sort.Slice":            true,
	"sort.SliceStable":      true,
	"sort.Sort":             true,
	"sort.Stable":           true,
	"sort.Strings":          true,
}

// inSpare are those that write after the end of a slice if it has spare capacity.
var inSpare = map[string]bool{"append": true, "slices.Insert": true, "slices.AppendSeq": true}

// expr looks for calls that write in place, and follows the functions in it.
func (f *flow) expr(n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			inner := &flow{source: f.source, report: f.report, env: maps.Clone(f.env), values: f.values}
			inner.function(n.Type, n.Body)
			return false
		case *ast.CallExpr:
			f.called(n)
		}
		return true
	})
}

func (f *flow) called(call *ast.CallExpr) {
	f.hand(call)
	if len(call.Args) == 0 {
		return
	}
	name, first := f.library(call), call.Args[0]
	switch s := f.standing(first); {
	case inPlace[name] && s > own:
		f.tell(call, fmt.Sprintf("%s writes into %s, which belongs to a state", name, written(first)), first)
	case inSpare[name] && s == shared && len(call.Args) > 1:
		f.tell(call, fmt.Sprintf("%s may write into the array behind %s, which belongs to a state: two values that "+
			"grow from the same one overwrite each other", name, written(first)), first, f.clip(name, first)...)
	}
	if len(call.Args) == 2 && f.calls(call, "Key", "With") {
		if p, ok := f.place(call.Args[1]); ok {
			f.env.set(p, shared) // from here on it belongs to the states
		}
	}
}

// write reports an assignment into a state's memory.
func (f *flow) write(s ast.Node, to ast.Expr) {
	if f.inState(to) {
		f.tell(s, fmt.Sprintf("the assignment to %s writes into a state in place", written(to)), holder(to))
	}
}

// holder returns the map, slice or pointer that an assignment writes into.
func holder(e ast.Expr) ast.Expr {
	switch x := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.SelectorExpr:
		if _, ok := ast.Unparen(x.X).(*ast.Ident); !ok {
			return holder(x.X)
		}
		e = x.X
	case *ast.StarExpr:
		e = x.X
	}
	return e
}

func (f *flow) tell(at ast.Node, what string, holder ast.Expr, fixes ...analysis.SuggestedFix) {
	f.report(codeInPlace, at, fmt.Sprintf("%s. Others read it at the same time, and a checkpoint "+
		"may miss the change. %s", what, f.advice(holder)), fixes...)
}

// advice says how to copy what would be written into.
func (f *flow) advice(holder ast.Expr) string {
	text := written(holder)
	t := f.pass.TypesInfo.TypeOf(holder)
	_, named := f.place(holder)
	switch t.Underlying().(type) {
	case *types.Map:
		if named {
			return fmt.Sprintf("Copy it first: %s = maps.Clone(%s).", text, text)
		}
		return "Copy it first, with maps.Clone."
	case *types.Slice:
		if named {
			return fmt.Sprintf("Copy it first: %s = slices.Clone(%s).", text, text)
		}
		return "Copy it first, with slices.Clone."
	}
	return "Copy what the pointer points to, change the copy, and keep a pointer to that."
}

// clip returns the fix of an append: it removes the slice's spare capacity, so that
// append has to copy.
func (f *flow) clip(name string, first ast.Expr) []analysis.SuggestedFix {
	if _, ok := f.place(first); !ok || name != "append" {
		return nil
	}
	text := written(first)
	return []analysis.SuggestedFix{
		{
			Message: "Have append copy the slice",
			TextEdits: []analysis.TextEdit{
				{
					Pos:     first.Pos(),
					End:     first.End(),
					NewText: fmt.Appendf(nil, "%s[:len(%s):len(%s)]", text, text, text),
				},
			},
		},
	}
}
