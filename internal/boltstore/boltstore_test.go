package boltstore

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/store"
)

// open opens a store in a new folder; the test closes it.
func open(t *testing.T) store.Store {
	return openAt(t, filepath.Join(t.TempDir(), "data", "holdfast.db"))
}

func openAt(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func reopen(t *testing.T, s store.Store) store.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openAt(t, s.(*Store).path)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open, storetest.Options{Reopen: reopen})
}

func TestAgainstReference(t *testing.T) {
	t.Parallel()
	reference := func(*testing.T) store.Store { return memstore.New() }
	storetest.Compare(t, open, reference, storetest.Options{Reopen: reopen})
}
