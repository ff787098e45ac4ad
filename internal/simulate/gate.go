package simulate

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
)

// Goroutines of the servers meet the scheduler at seams: before each call of the store, before
// its reply, at a chunk of a model, when a tool starts or ends. There they wait under a name
// that is the same in every process, until they are let go with a verdict.

// waiter is a goroutine at a seam.
type waiter struct {
	name    string
	detail  string // orders those of one name
	server  *server
	options []string // besides goOn
	linked  bool     // it needs the connection to the store
	verdict chan string
	auto    bool // it is let go as soon as the world rests, without a choice
	arrived int  // orders those of one name and detail
}

// held reports whether it has to wait until its server is in touch again.
func (w *waiter) held() bool {
	return w.linked && (w.server.suspended.Load() || w.server.link.cut.Load() || w.server.link.deaf.Load() && w.auto)
}

// gate is where all goroutines wait that have met a seam.
type gate struct {
	mu      sync.Mutex
	waiting []*waiter
	arrived int
}

// wait waits until the goroutine is let go. It reports false if ctx ended first.
func (g *gate) wait(ctx context.Context, w *waiter) (verdict string, let bool) {
	w.verdict = make(chan string, 1)
	g.mu.Lock()
	g.arrived++
	w.arrived = g.arrived
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case verdict = <-w.verdict:
		return verdict, true
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting, w)
	if at < 0 { // it was let go before that
		return <-w.verdict, true
	}
	g.waiting = slices.Delete(g.waiting, at, at+1)
	return "", false
}

// let lets a goroutine go.
func (g *gate) let(w *waiter, verdict string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.waiting, w); at >= 0 { // it has not left with its context
		g.waiting = slices.Delete(g.waiting, at, at+1)
		w.verdict <- verdict
	}
}

// sorted returns those who wait, by name. Of several with one name all but the first get a
// number.
func (g *gate) sorted() []*waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.waiting)
	slices.SortFunc(all, func(a, b *waiter) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.detail, b.detail), cmp.Compare(a.arrived, b.arrived))
	})
	return all
}

// named returns the names of those who wait, in order, each only once.
func named(all []*waiter) []string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.name
		for n := 1; i >= n && all[i-n].name == w.name; n++ {
			names[i] = w.name + "#" + strconv.Itoa(n+1)
		}
	}
	return names
}
