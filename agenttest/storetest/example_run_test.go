package storetest_test

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/store"
)

// conformance is the suite on the store of the package's example.
var conformance func(t *testing.T)

// TestConformance runs what ExampleRun shows.
func TestConformance(t *testing.T) {
	ExampleRun()
	conformance(t)
}

// The test of a store's author: the body of func TestConformance(t *testing.T) in the
// package of the store. Every test of the suite gets an empty store.
func ExampleRun() {
	conformance = func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			db, err := open(filepath.Join(t.TempDir(), "threads"), func(store.ThreadKey, string) {})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		}, storetest.Options{})
	}
}
