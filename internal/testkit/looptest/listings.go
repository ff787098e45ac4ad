package looptest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// checkListings looks at each commit of each test: one that stores a state says in which lists of
// the index the thread is then, as a reader of the state would. A commit that does not is a mistake
// of the engine, so it panics.
func checkListings(_ holdfast.Iteration, c *store.Commit, _ time.Duration, _ error) {
	if c.State == nil {
		return
	}
	st, err := thread.DecodeState(c.State)
	if err != nil {
		return // a test has spoilt it
	}
	want := thread.Listings(c, st)
	same := func(a, b store.Listing) bool { return a.List == b.List && a.At.Equal(b.At) }
	if c.Listings == nil || !slices.EqualFunc(c.Listings, want, same) {
		panic(fmt.Sprintf("the commit %s to thread %s lists it in %v, and its state in %v", c.ID, c.Key, c.Listings,
			want))
	}
}
