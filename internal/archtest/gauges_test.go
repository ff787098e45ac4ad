package archtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// gauge is a limit for what a reader can take in at once. None is raised: what exceeds
// it is given another shape.
type gauge struct {
	name  string
	limit int
	all   []measured
	over  map[string]int // what exceeds it for now, see below
}

// measured is a package, type, function or line, and how large it is.
type measured struct {
	key       string // names it, wherever in its package it stands
	n         int
	complaint func() string // what is wrong, and what to do about it
}

// TestGauges has every gauge. With -v it prints what each of them shows, the widest
// first; CONTRIBUTING.md says why they are there.
func TestGauges(t *testing.T) {
	t.Parallel()
	packages, files := modulePackages(t), sources(t, root)
	for _, g := range []gauge{
		{name: "rings", limit: maxRings, all: rings(packages, maxRings), over: overRings},
		{name: "methods", limit: maxMethods, all: methods(packages), over: overMethods},
		{name: "statements", limit: maxStatements, all: statements(files), over: overStatements},
		{name: "embedding", all: embedding(packages), over: overEmbedding},
		{name: "columns", all: columns(files)},
		{name: "literals", all: literals(files, packages)},
		{name: "sleeps", all: sleeps(files)},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, m := range g.shown() {
				t.Logf("%5d %s", m.n, m.key)
			}
			refused, listed := g.check()
			for _, text := range listed {
				t.Log(text)
			}
			for _, text := range refused {
				t.Error(text)
			}
		})
	}
}

// shown is what exceeds half of the limit, the largest first.
func (g gauge) shown() []measured {
	all := slices.DeleteFunc(slices.Clone(g.all), func(m measured) bool { return m.n <= g.limit/2 })
	slices.SortFunc(all, func(a, b measured) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.key, b.key))
	})
	return all
}

// check has the complaints about what exceeds the limit, apart from those about what is
// listed as that; and about entries of the list that are wrong.
func (g gauge) check() (refused, listed []string) {
	needed := map[string]bool{}
	for _, m := range g.shown() {
		written, ok := g.over[m.key]
		switch {
		case m.n <= g.limit:
		case !ok:
			refused = append(refused, m.complaint())
		case m.n > written:
			refused = append(refused, fmt.Sprintf("%s\n%s had %d when it was listed, and must not grow", m.complaint(),
				m.key, written))
		default:
			listed = append(listed, m.complaint())
		}
		needed[m.key] = needed[m.key] || m.n > g.limit
	}
	for key := range g.over {
		if !needed[key] {
			refused = append(refused, fmt.Sprintf("%s is within the limit of %s, or gone: remove it from over_test.go",
				key, g.name))
		}
	}
	return refused, listed
}

// wantRefused fails unless a gauge refuses what was measured in a fixture with exactly
// these complaints.
func wantRefused(t *testing.T, g gauge, all []measured, want string) {
	t.Helper()
	g.all = all
	refused, _ := g.check()
	if got := strings.Join(refused, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOverShrinks: what is listed may not grow, and leaves the list as soon as it can.
func TestOverShrinks(t *testing.T) {
	t.Parallel()
	thing := func(key string, n int) measured {
		return measured{key: key, n: n, complaint: func() string { return fmt.Sprintf("%s has %d", key, n) }}
	}
	g := gauge{name: "things", limit: 10, over: map[string]int{"same": 12, "less": 12, "more": 12, "within": 12}}
	all := []measured{thing("same", 12), thing("less", 11), thing("more", 13), thing("within", 10), thing("new", 11)}
	wantRefused(t, g, all, `more has 13
more had 12 when it was listed, and must not grow
new has 11
within is within the limit of things, or gone: remove it from over_test.go`)
}
