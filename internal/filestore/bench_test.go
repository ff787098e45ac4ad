package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/store"
)

// BenchmarkCommit is the traffic of a server: writers that each commit one small
// record to a thread of their own at a time. Beside commits per second it tells the
// bytes that the process caused to be written to disk, and %bare: how much it is of what
// Pebble alone does with a put of the record and one of the head for each commit.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, record := openBench(b), words(120)
			before := diskWrites(b)
			ours := each(b, writers, func(w int) func() error { return committing(b, s, w, record) })
			written := diskWrites(b) - before
			bare := each(b, writers, func(w int) func() error { return putting(s.committer.writing.db, w, record) })
			b.ReportMetric(float64(b.N)/ours.Seconds(), "commits/s")
			b.ReportMetric(float64(written)/float64(b.N), "disk-B/op")
			b.ReportMetric(100*bare.Seconds()/ours.Seconds(), "%bare")
		})
	}
}

// BenchmarkIndex is what the index costs: turns of six commits, with the lists that a run has its thread in,
// and, as %bare, without any. Both take turns, because a disk is not always as fast.
func BenchmarkIndex(b *testing.B) {
	for _, writers := range []int{1, 10} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, record := openBench(b), words(120)
			var with, without time.Duration
			for n, left := 0, b.N; left > 0; n++ {
				some := min(left, 500)
				left -= some
				listed := func(w int) func() error { return turns(b, s, fmt.Sprintf("l%d-%d", n, w), record, true) }
				bare := func(w int) func() error { return turns(b, s, fmt.Sprintf("b%d-%d", n, w), record, false) }
				with += times(b, some, writers, listed)
				without += times(b, some, writers, bare)
			}
			b.ReportMetric(float64(with.Microseconds())/float64(b.N), "us/turn")
			b.ReportMetric(100*without.Seconds()/with.Seconds(), "%bare")
		})
	}
}

// turns returns a function that commits what a run of a few words does to a thread, which is in the lists of
// its run meanwhile, and in one of those that ended afterwards.
func turns(b *testing.B, s *Store, thread string, record []byte, listed bool) func() error {
	const tenant, commits = "default", 6
	state := words(300)
	runs := []store.Listing{
		{List: store.List{Name: store.ListRunning, Tenant: tenant, Group: "local"}, At: time.UnixMilli(1)},
		{List: store.List{Name: store.ListTenantRunning, Tenant: tenant}, At: time.UnixMilli(1)},
		{List: store.List{Name: store.ListRun, Tenant: tenant, Group: "0123456789abcdef"}, At: time.UnixMilli(1)},
	}
	head, n := store.Head{Next: 1}, 0
	return func() error {
		for i := range commits {
			n++
			c := &store.Commit{
				Key:       store.ThreadKey{Tenant: tenant, Thread: thread},
				ID:        fmt.Sprintf("c%015x", n),
				Expect:    head.Position(),
				User:      "local",
				Process:   "p-0123456789abcdef",
				Fence:     store.Fence{Epoch: 1, Nonce: "0123456789abcdef"},
				UpdatedAt: time.Now(),
				Records:   [][]byte{record},
				State:     state,
			}
			switch {
			case !listed:
			case i < commits-1:
				c.Listings = slices.Clone(runs)
			default:
				c.Listings = []store.Listing{{List: store.List{Name: store.ListEnded}, At: c.UpdatedAt}}
			}
			if err := s.Commit(b.Context(), c); err != nil {
				return err
			}
			head = store.Head{Fence: c.Fence, Next: head.Next + 1, ETag: c.ID}
		}
		return nil
	}
}

// putting returns a function that puts a record and a head.
func putting(db *pebble.DB, w int, record []byte) func() error {
	n := uint64(0)
	head := make([]byte, 60)
	return func() error {
		n++
		t := db.NewBatch()
		defer t.Close()
		// In a space that the store does not use.
		key := binary.BigEndian.AppendUint64([]byte{0xf0}, uint64(w))
		err := errors.Join(t.Set(key, head, nil), t.Set(binary.BigEndian.AppendUint64(key, n), record, nil))
		if err != nil {
			return err
		}
		return db.Apply(t, pebble.Sync)
	}
}

func openBench(b *testing.B) *Store {
	s, err := Open(filepath.Join(b.TempDir(), "data"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// diskWrites is what the process caused to be written to disk, where the system tells.
func diskWrites(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// words is text that compresses about as well as prose in JSON does.
func words(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var s strings.Builder
	for s.Len() < size {
		fmt.Fprintf(&s, `{"type":"TEXT_MESSAGE_CONTENT","delta":"%x %x"}`, r.Uint64(), r.Uint32())
	}
	return []byte(s.String()[:size])
}

func random(size int) []byte {
	b := make([]byte, 0, size+8)
	for r := rand.New(rand.NewPCG(1, 2)); len(b) < size; {
		b = binary.BigEndian.AppendUint64(b, r.Uint64())
	}
	return b[:size]
}

// each runs b.N operations, shared by the workers, and returns how long they took.
// newWorker makes the operation of one worker.
func each(b *testing.B, workers int, newWorker func(w int) func() error) time.Duration {
	b.Helper()
	return times(b, b.N, workers, newWorker)
}

// times is each for so many operations.
func times(b *testing.B, all, workers int, newWorker func(w int) func() error) time.Duration {
	b.Helper()
	runtime.GC()
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		n := all / workers
		if w < all%workers {
			n++
		}
		op := newWorker(w)
		wg.Go(func() {
			for range n {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begun)
}

// committing returns a function that commits one record to a thread of its own.
func committing(b *testing.B, s *Store, w int, record []byte) func() error {
	head := store.Head{Next: 1}
	key := store.ThreadKey{Tenant: "default", Thread: fmt.Sprintf("thread-%08d-4e5f-8a9b-0123456789ab", w)}
	n := 0
	return func() error {
		n++
		c := &store.Commit{
			Key:       key,
			ID:        fmt.Sprintf("c%015x", n),
			Expect:    head.Position(),
			User:      "local",
			Process:   "p-0123456789abcdef",
			Fence:     store.Fence{Epoch: 1, Nonce: "0123456789abcdef"},
			UpdatedAt: time.Now(),
			Records:   [][]byte{record},
		}
		if err := s.Commit(b.Context(), c); err != nil {
			return err
		}
		head = store.Head{Fence: c.Fence, Next: head.Next + 1, ETag: c.ID}
		return nil
	}
}
