package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// BenchmarkShortThread: what a thread of two messages takes on disk once its log is archived and
// the store has been opened again, which is when it has rewritten what it logged. Make many: the
// store's own files count, too (-benchtime=3000x).
func BenchmarkShortThread(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "data")
	open := func() *filestore.Store {
		db, err := filestore.Open(dir, filestore.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return db
	}
	db, words := open(), spoken(rand.New(rand.NewPCG(1, 1)), 16)
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, word := range words {
				if !yield(holdfast.Delta{Text: word}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	})
	e := looptest.Start(b, db, func(c *looptest.Config) {
		c.ArchiveAfter, c.Log = time.Hour, slog.New(slog.NewTextHandler(io.Discard, nil))
	}, holdfast.Agent{Name: "a", Model: model})
	for range b.N {
		id := fmt.Sprintf("thread-%016x", rand.Uint64())
		c := &talk{TB: b, db: db}
		c.say(e, looptest.RunInput(id, fmt.Sprintf("run-%016x", rand.Uint64()),
			looptest.UserSays(fmt.Sprintf("message-%016x", rand.Uint64()), "What is in stock?")))
		if err := e.Keeper.Archive(b.Context(), looptest.KeyOf(id)); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.Shutdown(b.Context()); err != nil {
		b.Fatal(err)
	}
	for range 2 { // opening writes what the log has into tables
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		db = open()
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(bytesIn(b, dir))/float64(b.N), "bytes/thread")
}

// BenchmarkArchive: how long a thread of two messages takes until its log is archived, with as many at
// a time as a server archives (-benchtime=3000x).
func BenchmarkArchive(b *testing.B) {
	db, err := filestore.Open(filepath.Join(b.TempDir(), "data"), filestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	e := looptest.Start(b, db, func(c *looptest.Config) {
		c.ArchiveAfter, c.Log = time.Hour, slog.New(slog.NewTextHandler(io.Discard, nil))
	}, holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "It is in stock, and will be for a while."})})
	ids := make(chan string, b.N)
	for i := range b.N {
		id := fmt.Sprintf("thread-%d", i)
		c := &talk{TB: b, db: db}
		c.say(e, looptest.RunInput(id, "run-"+id, looptest.UserSays("message-"+id, "What is in stock?")))
		ids <- id
	}
	close(ids)
	b.ResetTimer()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for id := range ids {
				if err := e.Keeper.Archive(b.Context(), looptest.KeyOf(id)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	if err := errors.Join(e.Shutdown(b.Context()), db.Close()); err != nil {
		b.Fatal(err)
	}
}

// bytesIn returns the size of the files in a folder.
func bytesIn(b *testing.B, dir string) (n int64) {
	b.Helper()
	if err := filepath.Walk(dir, func(_ string, file os.FileInfo, err error) error {
		if err == nil && !file.IsDir() {
			n += file.Size()
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return n
}
