package filestore

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/store"
)

// open opens a store in a new directory; the test closes it.
func open(t *testing.T) store.Store { return openAt(t, filepath.Join(t.TempDir(), "a", "data")) }

func openAt(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
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
	return openAt(t, s.(*Store).dir)
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
