package filestore

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// TestManyThreads: how long a store takes to open does not depend on how much it holds.
func TestManyThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes 100,000 threads")
	}
	t.Parallel()
	const threads, workers = 100_000, 1000
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := w; n < threads; n += workers {
				w := newWriter(t, s, n)
				if err := s.Commit(t.Context(), w.next(200)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var took time.Duration
	for range 3 { // others may use the processor
		begun := time.Now()
		s = openAt(t, dir)
		if took = time.Since(begun); took <= 2*time.Second {
			break
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d threads, opened in %s", threads, took)
	if took > 2*time.Second {
		t.Fatalf("a store of %d threads took %s to open", threads, took)
	}
	if _, err := s.Head(t.Context(), threadKey(threads-1)); err != nil {
		t.Error(err)
	}
}

// TestLargeCommit: a commit of very many messages does not keep other tenants waiting.
func TestLargeCommit(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "data"))
	other := newWriter(t, s, 2)
	other.head.Key.Tenant = "other"
	var longest time.Duration
	for n := range 3 { // others may use the processor
		if longest = waitFor(t, other, manyMessages(t, s, 10+n)); longest <= 100*time.Millisecond {
			break
		}
	}
	t.Logf("meanwhile a commit of another tenant took %s at most", longest)
	if longest > time.Second { // 100 ms on a machine that does nothing else
		t.Errorf("a commit of another tenant waited %s", longest)
	}
}

// manyMessages is a commit of 2.8 MB.
func manyMessages(t *testing.T, s *Store, n int) *store.Commit {
	c := newWriter(t, s, n).next(100)
	for n := range 10_000 {
		c.Messages = append(c.Messages, store.Message{ID: fmt.Sprintf("m%d", n), Parent: c.Messages[n].ID, Data: words(280)})
	}
	return c
}

// waitFor makes a large commit, and others while it is made; it returns how long the
// longest of those took.
func waitFor(t *testing.T, other *writer, large *store.Commit) (longest time.Duration) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- other.s.Commit(t.Context(), large) }()
	for {
		begun := time.Now()
		other.write(t.Context(), 1, 100)
		longest = max(longest, time.Since(begun))
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return longest
		default:
		}
	}
}
