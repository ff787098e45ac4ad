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

// A package may be large, but its files must not all refer to each other, or nobody can
// understand one of them without the rest. The gauge of rings takes the files of a package as
// the nodes of a graph, and the use of a name, method or field that another file declares as
// an edge. Files that can be reached from each other are a ring. The sum of all rings counts:
// two rings of a package are as much to read as one that is as long as both.

// maxRings is how many lines the rings of a package may have together, in every
// package. Code that exceeds it is changed, the limit is not: what the message names
// is what to turn around.
const maxRings = 2000

// rings measures each package that has any.
func rings(all []*code, limit int) []measured {
	var sums []measured
	for _, c := range all {
		g := newFileGraph(c)
		if n := g.ringLines(nil); n > 0 {
			name := cmp.Or(c.name, "(root)")
			sums = append(sums, measured{key: name, n: n, complaint: func() string { return g.complaint(name, limit) }})
		}
	}
	return sums
}

// TestRingsSeen: the gauge can refuse. In the fixture, high.go uses low.go six times,
// which is as it should be, and low.go uses high.go twice. left.go and right.go are a
// second ring.
func TestRingsSeen(t *testing.T) {
	t.Parallel()
	const want = `rings: 2 rings have 44 lines together, at most 20 are allowed
  31 lines: high.go low.go
  13 lines: left.go right.go
Nobody can read one file of a ring without the others. Turn this edge around, and the rings have 13 lines:
  low.go -> high.go
    low.go:14 uses tower
    low.go:15 uses tower.name
Move what is used to where it is used, or to a file below both, or hand it over as an argument.`
	wantRefused(t, gauge{limit: 20}, rings([]*code{fixture(t, "rings")}, 20), want)
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
	for _, id := range slices.SortedFunc(maps.Keys(c.info.Uses), func(a, b *ast.Ident) int {
		return cmp.Compare(a.Pos(), b.Pos())
	}) {
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
		return cmp.Or(cmp.Compare(len(a.uses), len(b.uses)), strings.Compare(a.from, b.from),
			strings.Compare(a.to, b.to))
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

// rings are the sets of files that can be reached from each other when the edges of
// without are gone, the longest first. It is Tarjan's algorithm. A file alone is no
// ring, however long it is.
func (g *fileGraph) rings(without map[int]bool) [][]string {
	next := map[string][]string{}
	for i, e := range g.edges {
		if !without[i] {
			next[e.from] = append(next[e.from], e.to)
		}
	}
	var all [][]string
	var stack []string
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
		ring := slices.Sorted(slices.Values(stack[first:]))
		stack = stack[:first]
		for _, f := range ring {
			onStack[f] = false
		}
		if len(ring) > 1 {
			all = append(all, ring)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(g.lines)) {
		if number[f] == 0 {
			visit(f)
		}
	}
	slices.SortFunc(all, func(a, b []string) int {
		return cmp.Or(cmp.Compare(g.size(b), g.size(a)), slices.Compare(a, b))
	})
	return all
}

// ringLines is the sum of the lines of all rings.
func (g *fileGraph) ringLines(without map[int]bool) int {
	n := 0
	for _, ring := range g.rings(without) {
		n += g.size(ring)
	}
	return n
}

// turn says which edges to turn around for the rings to come below the limit: one if
// there is such a one, and of several the one with the fewest uses; else a few, each
// the one that takes most off the rings. rest is the size that they then have.
func (g *fileGraph) turn(limit int) (edges []fileEdge, rest int) {
	gone := map[int]bool{}
	left := func(i int) int {
		without := maps.Clone(gone)
		without[i] = true
		return g.ringLines(without)
	}
	for g.ringLines(gone) > limit {
		ringOf := map[string]int{}
		for i, ring := range g.rings(gone) {
			for _, f := range ring {
				ringOf[f] = i + 1
			}
		}
		best, least := -1, 0
		for i, e := range g.edges {
			if gone[i] || ringOf[e.from] == 0 || ringOf[e.from] != ringOf[e.to] {
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
		if g.ringLines(gone) <= limit {
			continue // the others are enough
		}
		gone[i] = true
		edges = append(edges, g.edges[i])
	}
	return edges, g.ringLines(gone)
}

// complaint says what is wrong, and what to do about it.
func (g *fileGraph) complaint(name string, limit int) string {
	all := g.rings(nil)
	edges, rest := g.turn(limit)
	number, those := "one ring has", "this edge"
	if len(all) > 1 {
		number = fmt.Sprintf("%d rings have", len(all))
	}
	if len(edges) > 1 {
		those = fmt.Sprintf("these %d edges", len(edges))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %d lines together, at most %d are allowed\n", name, number, g.ringLines(nil), limit)
	for _, ring := range all {
		fmt.Fprintf(&b, "  %d lines: %s\n", g.size(ring), strings.Join(ring, " "))
	}
	fmt.Fprintf(&b, "Nobody can read one file of a ring without the others. Turn %s around, and "+
		"the rings have %d lines:\n", those, rest)
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
