package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"

	bolt "go.etcd.io/bbolt"
)

// BenchmarkCommit makes commits of one 2 KB record, by one writer and by 64, and
// then the same puts with nothing but bbolt: one put of the record and one of
// the head per commit, all that waits in one transaction. The metric %bare is
// how much of the bare loop's throughput the store has.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 64} {
		for name, record := range map[string][]byte{"text": words(2048), "noise": random(2048)} {
			b.Run(fmt.Sprintf("writers=%d/%s", writers, name), func(b *testing.B) {
				s := openBench(b)
				ours := each(b, writers, func(w int) func() error { return committing(b, s, w, record) })
				bare := bareLoop(b, writers, record)
				b.ReportMetric(float64(b.N)/ours.Seconds(), "commits/s")
				b.ReportMetric(float64(b.N)/bare.Seconds(), "bare/s")
				b.ReportMetric(100*bare.Seconds()/ours.Seconds(), "%bare")
			})
		}
	}
}

// BenchmarkHotCommit is the traffic of a busy server: 100 threads at once, each
// committing one small record at a time.
func BenchmarkHotCommit(b *testing.B) {
	const threads = 100
	s := openBench(b)
	record := words(120)
	before, first := s.db.Stats(), txid(b, s)
	took := each(b, threads, func(w int) func() error { return committing(b, s, w, record) })
	stats := s.db.Stats()
	written := stats.TxStats.GetPageAlloc() - before.TxStats.GetPageAlloc()
	b.ReportMetric(float64(b.N)/took.Seconds(), "commits/s")
	b.ReportMetric(float64(written)/float64(b.N), "B-written/op")
	b.ReportMetric(float64(b.N)/float64(txid(b, s)-first), "commits/sync")
}

func openBench(b *testing.B) *Store {
	s, err := Open(filepath.Join(b.TempDir(), "holdfast.db"), Options{})
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

func txid(tb testing.TB, s *Store) int {
	tb.Helper()
	id := 0
	if err := s.db.View(func(tx *bolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		tb.Fatal(err)
	}
	return id
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

// each runs b.N operations, shared by the workers, and returns how long they
// took. newWorker makes the operation of one worker.
func each(b *testing.B, workers int, newWorker func(w int) func() error) time.Duration {
	b.Helper()
	runtime.GC()
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		n := b.N / workers
		if w < b.N%workers {
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
			Key: key, ID: fmt.Sprintf("c%015x", n), Expect: head.Position(), User: "local", Process: "p-0123456789abcdef",
			Fence: store.Fence{Epoch: 1, Nonce: "0123456789abcdef"}, UpdatedAt: time.Now(), Records: [][]byte{record},
		}
		if err := s.Commit(b.Context(), c); err != nil {
			return err
		}
		head = store.Head{Fence: c.Fence, Next: head.Next + 1, ETag: c.ID}
		return nil
	}
}

// bareLoop is the floor: the same puts, grouped in the same way, and nothing
// that a store needs besides.
func bareLoop(b *testing.B, writers int, record []byte) time.Duration {
	b.Helper()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, NoFreelistSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte(bucketData)); return err }); err != nil {
		b.Fatal(err)
	}
	puts := make(chan barePut)
	var committer sync.WaitGroup
	committer.Go(func() { bareCommitter(db, puts, record) })
	took := each(b, writers, func(w int) func() error {
		p := barePut{thread: uint64(w), done: make(chan error, 1)}
		return func() error {
			p.n++
			puts <- p
			return <-p.done
		}
	})
	close(puts)
	committer.Wait()
	return took
}

type barePut struct {
	thread, n uint64
	done      chan error
}

func bareCommitter(db *bolt.DB, puts <-chan barePut, record []byte) {
	for first := range puts {
		batch := []barePut{first}
		for yielded := false; ; yielded = true {
			for more := true; more; {
				select {
				case p := <-puts:
					batch = append(batch, p)
				default:
					more = false
				}
			}
			if yielded {
				break
			}
			runtime.Gosched()
		}
		err := db.Update(func(tx *bolt.Tx) error {
			data := tx.Bucket([]byte(bucketData))
			data.FillPercent = fill
			for _, p := range batch {
				head := data.Put(sectionKey(p.thread, sectionHead), record[:100])
				if err := errors.Join(head, data.Put(numberedKey(p.thread, sectionRecords, p.n), record)); err != nil {
					return err
				}
			}
			return nil
		})
		for _, p := range batch {
			p.done <- err
		}
	}
}
