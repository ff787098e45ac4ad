package loop_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkNewRun: the next turn in a long conversation, from the POST to the end of the run, with
// the client's side of it.
func BenchmarkNewRun(b *testing.B) {
	for _, kind := range []string{"memory", "file", "redis"} {
		for _, n := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprint(kind, "/", n), func(b *testing.B) {
				var db store.Store = memstore.New()
				switch kind {
				case "file":
					embedded, err := filestore.Open(filepath.Join(b.TempDir(), "data"), filestore.Options{})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = embedded.Close() })
					db = embedded
				case "redis":
					client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, Protocol: 2})
					shared, err := redisstore.New(b.Context(), client, redisstore.Options{})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = shared.Close() })
					db = shared
				}
				c := &talk{TB: b, db: db}
				e := looptest.Start(b, db, nil, windowed())
				c.begin(e, n)
				c.next(e)
				b.ReportAllocs()
				before := cpu()
				for b.Loop() {
					c.next(e)
				}
				b.ReportMetric((cpu()-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
