// Package storetest is the conformance suite of [store.Store]: what the interface says
// in words, as tests. A store that passes it can keep the threads of a server.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store {
//			s := open(t, t.TempDir())
//			t.Cleanup(func() { s.Close() })
//			return s
//		}, storetest.Options{})
//	}
//
// The tests are grouped by the roles of a store: Commit, Read, Directory, Index, Presence,
// Notify, Ledger, Hints and Formats; "go test -run TestConformance/Ledger" runs one group.
//
// [Compare] goes further: it runs random commands against the store and against another
// one that is known to be right, and expects the same results.
package storetest

import (
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// Options tell the suite what else the store can do.
type Options struct {
	// Reopen closes the store and opens it again with the data that it has kept. It is
	// nil for a store that keeps none; then nothing is reopened.
	Reopen func(t *testing.T, s store.Store) store.Store
	// Break has the ways in which the head of a thread can become unreadable, by name: each
	// function makes it so, behind the store's back. It is empty for a store in which that
	// cannot happen; then nothing is broken.
	Break map[string]func(t *testing.T, s store.Store, key store.ThreadKey)
}

// Run runs the suite. open returns a new, empty store for each test and arranges, with
// t.Cleanup, that it is closed when the test ends. The tests run in parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store, opts Options) {
	t.Helper()
	groups := map[string]map[string]func(*testing.T, store.Store){
		"Commit":    commitTests(),
		"Read":      readTests(),
		"Directory": directoryTests(),
		"Index":     indexTests(),
		"Presence":  presenceTests(),
		"Notify":    notifyTests(),
		"Ledger":    ledgerTests(),
		"Hints":     hintTests(),
		"Formats":   formatTests(),
		"Roster":    rosterTests(),
		"Names":     nameTests(),
	}
	for group, tests := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for name, f := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f(t, open(t))
				})
			}
		})
	}
	for way, breaks := range opts.Break {
		t.Run("Unreadable/"+way, func(t *testing.T) {
			t.Parallel()
			for name, f := range unreadableTests() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := open(t)
					f(t, s, func(key store.ThreadKey) { t.Helper(); breaks(t, s, key) })
				})
			}
		})
	}
	if opts.Reopen != nil {
		t.Run("Reopen", func(t *testing.T) {
			t.Parallel()
			testReopen(t, open(t), opts.Reopen)
		})
	}
}
