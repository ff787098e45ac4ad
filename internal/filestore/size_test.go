package filestore

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// manyThreads is how many threads BenchmarkOpen's store has.
const manyThreads = 100_000

// BenchmarkOpen opens a store of many threads.
func BenchmarkOpen(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "data")
	fill(b, dir)
	for b.Loop() {
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if _, err := s.Head(b.Context(), threadKey(manyThreads-1)); err != nil {
			b.Error(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// fill makes the threads.
func fill(b *testing.B, dir string) {
	const workers = 1000
	s := openAt(b, dir)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := w; n < manyThreads; n += workers {
				w := newWriter(b, s, n)
				if err := s.Commit(b.Context(), w.next(200)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLargeCommit is how long other tenants' commits take while one of 10,000
// messages, 2.8 MB, is made: on the average, and at most.
func BenchmarkLargeCommit(b *testing.B) {
	s := openAt(b, filepath.Join(b.TempDir(), "data"))
	other := newWriter(b, s, 0)
	other.head.Key.Tenant = "other"
	var longest, all time.Duration
	count := 0
	for n := 1; b.Loop(); n++ {
		large := newWriter(b, s, n).next(100)
		for n := range 10_000 {
			large.Messages = append(large.Messages,
				store.Message{ID: fmt.Sprintf("m%d", n), Parent: large.Messages[n].ID, Data: words(280)})
		}
		done := make(chan error, 1)
		go func() { done <- s.Commit(b.Context(), large) }()
		for waiting := true; waiting; count++ {
			begun := time.Now()
			other.write(b.Context(), 1, 100)
			took := time.Since(begun)
			longest, all = max(longest, took), all+took
			select {
			case err := <-done:
				if err != nil {
					b.Fatal(err)
				}
				waiting = false
			default:
			}
		}
	}
	b.ReportMetric(longest.Seconds()*1000, "ms-max")
	b.ReportMetric(all.Seconds()*1000/float64(count), "ms-mean")
}

// TestRemovedWhole: of a thread that is deleted nothing is left, whether it has few keys or many, much under
// them or little.
func TestRemovedWhole(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "data"))
	for _, c := range []struct{ records, size int }{{0, 0}, {3, 10}, {fewKeys - 1, 10}, {fewKeys, 10}, {500, 10},
		{3, fewBytes}} {
		key := store.ThreadKey{Tenant: "acme", Thread: fmt.Sprint(c)}
		at := store.Position{Next: 1}
		commit := &store.Commit{Key: key, ID: "c", Expect: at, User: "alice", UpdatedAt: time.Now(),
			Fence: store.Fence{Epoch: 1, Nonce: "n"}}
		for range c.records {
			commit.Records = append(commit.Records, random(c.size))
		}
		if err := s.Commit(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		head, err := s.Head(t.Context(), key)
		if err == nil {
			err = s.Delete(t.Context(), key, head.Position())
		}
		if err != nil {
			t.Fatal(err)
		}
		if left := entries(t, s, spaceThreads); len(left) > 0 {
			t.Errorf("%+v: %d keys are left", c, len(left))
		}
	}
}
