package filestore

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-agents/holdfast/agenttest/storetest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/storekit"
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
	storetest.Run(t, open, storetest.Options{Reopen: reopen,
		Break: map[string]func(*testing.T, store.Store, store.ThreadKey){
			"damaged": breakHead,
		}})
}

// breakHead damages a thread's head, although the committer may remember it.
func breakHead(t *testing.T, s store.Store, key store.ThreadKey) {
	t.Helper()
	if err := s.(*Store).committer.submit(t.Context(), &damaging{key: key}); err != nil {
		t.Fatal(err)
	}
}

// damaging is an operation that damages a thread's head.
type damaging struct {
	key    store.ThreadKey
	number uint64
}

func (d *damaging) bytes() int { return 0 }

func (d *damaging) tell(*storekit.Waiters) {}

func (d *damaging) check(t *txn) (err error) {
	d.number, err = t.existing(d.key)
	return err
}

func (d *damaging) write(t *txn) error {
	return t.set(sectionKey(d.number, sectionHead), []byte("damaged"))
}

// TestAgainstReference makes random commands beside the reference, in CI fewer of them: see
// TestMain.
func TestAgainstReference(t *testing.T) {
	t.Parallel()
	reference := func(*testing.T) store.Store { return memstore.New() }
	storetest.Compare(t, open, reference, storetest.Options{Reopen: reopen})
}
