package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A package may be large, but its files must not all refer to each other: who
// then wants to understand one has to read them all. TestFileCycles takes the
// files of a package as the nodes of a graph, and the use of a name, method or
// field that another file declares as an edge. Files that can be reached from each
// other are a cycle, and its size is the sum of their lines.

// maxCycle is how many lines a package's largest cycle may have. Code that exceeds
// it is changed, the limit is not: what the message names is what to turn around.
const maxCycle = 2500

// maxCycleOf are the packages with another limit.
var maxCycleOf = map[string]int{
	"internal/loop":                  3000, // a run and its owner need each other
	"internal/loop with crashpoints": 3000,
}

func TestFileCycles(t *testing.T) {
	t.Parallel()
	for _, c := range modulePackages(t) {
		limit := cmp.Or(maxCycleOf[c.name], maxCycle)
		g := newFileGraph(c)
		cycle := g.largestCycle(nil)
		if len(cycle) > 1 {
			t.Logf(
				"%-32s %2d of %2d files, %5d of %5d lines, %.1f edges a file",
				cmp.Or(c.name, "(root)"),
				len(cycle),
				len(g.lines),
				g.size(cycle),
				g.size(slices.Collect(maps.Keys(g.lines))),
				float64(len(g.edges))/float64(len(g.lines)),
			)
		}
		if g.size(cycle) > limit {
			t.Error(g.complaint(cmp.Or(c.name, "the root package"), limit))
		}
	}
}

// TestFileCyclesSeen: the test can fail. In the fixture high.go uses low.go six
// times, which is as it should be, and low.go uses high.go twice.
func TestFileCyclesSeen(t *testing.T) {
	t.Parallel()
	g := newFileGraph(fixture(t, "cycle"))
	if cycle := g.largestCycle(nil); !slices.Equal(cycle, []string{"high.go", "low.go"}) {
		t.Fatalf("the largest cycle is %q, want high.go and low.go, but not alone.go", cycle)
	}
	const want = `testdata: a cycle of 2 files has 31 lines, at most 20 are allowed: high.go low.go
Nobody can read one of these files without the others. Turn this edge around, and the largest cycle has 0 lines:
  low.go -> high.go
    low.go:14 uses tower
    low.go:15 uses tower.name
Move what is used to where it is used, or to a file below both, or hand it over as an argument.`
	if got := g.complaint("testdata", 20); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// fileGraph says which file of a package uses which.
type fileGraph struct {
	lines map[string]int // of each file
	edges []fileEdge     // the ones with the fewest uses first
}

type fileEdge struct {
	from, to string
	uses     []string // where, and what
}

func newFileGraph(c *code) *fileGraph {
	g := &fileGraph{lines: map[string]int{}}
	for _, f := range c.files {
		g.lines[c.file(f.Package)] = c.fset.File(f.Package).LineCount()
	}
	symbols := symbolsOf(c.types)
	edges := map[[2]string]*fileEdge{}
	for _, id := range slices.SortedFunc(maps.Keys(c.info.Uses), func(a, b *ast.Ident) int { return cmp.Compare(a.Pos(), b.Pos()) }) {
		obj := origin(c.info.Uses[id])
		symbol, ok := symbols[obj]
		if !ok {
			continue
		}
		from, to := c.file(id.Pos()), c.file(obj.Pos())
		if from == to {
			continue
		}
		e := edges[[2]string{from, to}]
		if e == nil {
			e = &fileEdge{from: from, to: to}
			edges[[2]string{from, to}] = e
		}
		e.uses = append(e.uses, c.where(id.Pos())+" uses "+symbol)
	}
	for _, e := range edges {
		g.edges = append(g.edges, *e)
	}
	slices.SortFunc(g.edges, func(a, b fileEdge) int {
		return cmp.Or(
			cmp.Compare(len(a.uses), len(b.uses)),
			strings.Compare(a.from, b.from),
			strings.Compare(a.to, b.to),
		)
	})
	return g
}

// symbolsOf has what the files of a package can use of each other: its names, the
// methods and the fields of its types.
func symbolsOf(p *types.Package) map[types.Object]string {
	symbols := map[types.Object]string{}
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		symbols[obj] = name
		if named, ok := obj.Type().(*types.Named); ok && isType(obj) {
			for m := range named.Methods() {
				symbols[m] = name + "." + m.Name()
			}
			members(symbols, name, named.Underlying())
		} else {
			members(symbols, name, obj.Type())
		}
	}
	return symbols
}

func isType(obj types.Object) bool {
	_, ok := obj.(*types.TypeName)
	return ok
}

// members adds the fields and methods that a type without a name declares.
func members(symbols map[types.Object]string, name string, t types.Type) {
	switch t := t.(type) {
	case *types.Struct:
		for f := range t.Fields() {
			symbols[f] = name + "." + f.Name()
			members(symbols, name, f.Type())
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			symbols[m] = name + "." + m.Name()
		}
	case *types.Pointer:
		members(symbols, name, t.Elem())
	case *types.Slice:
		members(symbols, name, t.Elem())
	case *types.Array:
		members(symbols, name, t.Elem())
	case *types.Map:
		members(symbols, name, t.Elem())
	}
}

// origin is what was declared, for what a use of a generic type or function refers to.
func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Origin()
	case *types.Var:
		return obj.Origin()
	}
	return obj
}

func (g *fileGraph) size(files []string) int {
	n := 0
	for _, f := range files {
		n += g.lines[f]
	}
	return n
}

// largestCycle is the largest set of files that can be reached from each other, by
// lines, when the edges of without are gone. It is Tarjan's algorithm. A file alone
// is no cycle, however long it is.
func (g *fileGraph) largestCycle(without map[int]bool) []string {
	next := map[string][]string{}
	for i, e := range g.edges {
		if !without[i] {
			next[e.from] = append(next[e.from], e.to)
		}
	}
	var largest, stack []string
	number, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var visit func(string)
	visit = func(f string) {
		number[f], low[f] = len(number)+1, len(number)+1
		stack, onStack[f] = append(stack, f), true
		for _, to := range next[f] {
			if number[to] == 0 {
				visit(to)
				low[f] = min(low[f], low[to])
			} else if onStack[to] {
				low[f] = min(low[f], number[to])
			}
		}
		if low[f] != number[f] {
			return
		}
		first := slices.Index(stack, f)
		cycle := slices.Sorted(slices.Values(stack[first:]))
		stack = stack[:first]
		for _, f := range cycle {
			onStack[f] = false
		}
		if len(cycle) > 1 && g.size(cycle) > g.size(largest) {
			largest = cycle
		}
	}
	for _, f := range slices.Sorted(maps.Keys(g.lines)) {
		if number[f] == 0 {
			visit(f)
		}
	}
	return largest
}

// turn says which edges to turn around for the largest cycle to come below the
// limit: one if there is such a one, and of several the one with the fewest uses;
// else a few, each the one that takes most off the cycle. rest is the size that the
// largest cycle then has.
func (g *fileGraph) turn(limit int) (edges []fileEdge, rest int) {
	gone := map[int]bool{}
	left := func(i int) int {
		without := maps.Clone(gone)
		without[i] = true
		return g.size(g.largestCycle(without))
	}
	for g.size(g.largestCycle(gone)) > limit {
		cycle := g.largestCycle(gone)
		best, least := -1, 0
		for i, e := range g.edges {
			if gone[i] || !slices.Contains(cycle, e.from) || !slices.Contains(cycle, e.to) {
				continue
			}
			size := left(i)
			if best < 0 || max(size, limit) < max(least, limit) {
				best, least = i, size
			}
		}
		gone[best] = true
	}
	for _, i := range slices.Sorted(maps.Keys(gone)) {
		delete(gone, i)
		if g.size(g.largestCycle(gone)) <= limit {
			continue // the others are enough
		}
		gone[i] = true
		edges = append(edges, g.edges[i])
	}
	return edges, g.size(g.largestCycle(gone))
}

// complaint says what is wrong, and what to do about it.
func (g *fileGraph) complaint(name string, limit int) string {
	cycle := g.largestCycle(nil)
	edges, rest := g.turn(limit)
	those := "this edge"
	if len(edges) > 1 {
		those = fmt.Sprintf("these %d edges", len(edges))
	}
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%s: a cycle of %d files has %d lines, at most %d are allowed: %s\n",
		name,
		len(cycle),
		g.size(cycle),
		limit,
		strings.Join(cycle, " "),
	)
	fmt.Fprintf(
		&b,
		"Nobody can read one of these files without the others. Turn %s around, and the largest cycle has %d lines:\n",
		those,
		rest,
	)
	for _, e := range edges {
		fmt.Fprintf(&b, "  %s -> %s\n", e.from, e.to)
		for _, u := range e.uses[:min(len(e.uses), 5)] {
			fmt.Fprintf(&b, "    %s\n", u)
		}
		if n := len(e.uses) - 5; n > 0 {
			fmt.Fprintf(&b, "    and %d more\n", n)
		}
	}
	b.WriteString("Move what is used to where it is used, or to a file below both, or hand it over as an argument.")
	return b.String()
}
