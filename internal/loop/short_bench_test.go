package loop_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
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
