package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// TestSharedDamage: of a table that cannot be opened, nobody knows which threads it has, so
// the store says from its start on that it is damaged, no list passes for a whole one, and no
// thread for one that is not there. Damage in one thread's data concerns it alone.
func TestSharedDamage(t *testing.T) {
	t.Parallel()
	whole, threads := left(t, Options{})
	table := filepath.Base(matching(t, whole, "*.sst")[0])
	text, err := os.ReadFile(filepath.Join(whole, table))
	if err != nil {
		t.Fatal(err)
	}
	shared, alone := 0, 0
	for back := 10; back < len(text); back += max(1, len(text)/6) {
		dir := copied(t, whole)
		broken := []byte(string(text))
		broken[len(text)-back] ^= 1
		put(t, string(broken), dir, table)
		s, err := Open(dir, Options{})
		if errors.Is(err, store.ErrUnreadable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		lost := 0
		for n := range threads {
			switch _, err := snapshot(t.Context(), s, threadKey(n)); {
			case errors.Is(err, store.ErrUnreadable):
				lost++
			case err != nil:
				t.Errorf("%d bytes before the end: thread %d: %v", back, n, err)
			}
		}
		heads, err := s.Threads(t.Context(), holdfast.Principal{Tenant: "acme"}, time.Time{}, 100)
		if err == nil && len(heads) != threads {
			t.Errorf("%d bytes before the end: %d of %d threads are listed, and nothing is said", back, len(heads),
				threads)
		}
		switch can := s.CanCommit(t.Context()); {
		case errors.Is(can, store.ErrUnreadable):
			shared++
		case can != nil || err != nil:
			t.Errorf("%d bytes before the end: a check says %v, and the list %v", back, can, err)
		case lost > 0:
			alone++
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if shared == 0 || alone == 0 {
		t.Errorf("%d places were of all threads, and %d of some", shared, alone)
	}
}
