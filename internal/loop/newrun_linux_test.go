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
// the client's side of it: at the server that ran the last one, and at another one.
func BenchmarkNewRun(b *testing.B) {
	for _, servers := range []int{1, 2} {
		for _, kind := range []string{"memory", "file", "redis"} {
			for _, n := range []int{100, 1000, 5000} {
				b.Run(fmt.Sprint("servers=", servers, "/", kind, "/", n), func(b *testing.B) {
					newRuns(b, servers, kind, n)
				})
			}
		}
	}
}

// newRuns takes turns in a conversation of n messages, at so many servers in turns.
func newRuns(b *testing.B, servers int, kind string, n int) {
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
	var all []*looptest.Engine
	for range servers {
		all = append(all, looptest.Start(b, db, nil, windowed()))
	}
	c.begin(all[0], n)
	c.next(all[0])
	b.ReportAllocs()
	before := cpu()
	for i := 1; b.Loop(); i++ {
		c.next(all[i%servers])
	}
	b.ReportMetric((cpu()-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
}
