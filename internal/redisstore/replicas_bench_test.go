package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
)

// BenchmarkDurability is what a commit of a few words takes with --durability=store and
// failover, on one primary with one replica: alone, and for 100 runs at 50 a second each. In the
// latter another process shows each of the runs, and reads is what its reads take.
func BenchmarkDurability(b *testing.B) {
	primary, _ := redistest.StartReplicas(b, 1, "--appendonly", "yes")
	for _, runs := range []int{1, 100} {
		for replicas, level := range []string{"store", "failover"} {
			b.Run(fmt.Sprintf("%s/%d", level, runs), func(b *testing.B) {
				open := func() *Store {
					s, err := Open(context.Background(), primary.URL(),
						Options{Prefix: fmt.Sprintf("%s%d-%d:", level, runs, b.N), Replicas: replicas})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = s.Close() })
					return s
				}
				s, other := open(), open()
				var mu sync.Mutex
				var commits, reads []time.Duration
				var all sync.WaitGroup
				b.ResetTimer()
				for run := range runs {
					all.Go(func() {
						key := store.ThreadKey{Thread: fmt.Sprint(run)}
						at, fence := store.Position{Next: 1}, store.Fence{Epoch: 1, Nonce: "0123456789abcdef"}
						tick := time.NewTicker(20 * time.Millisecond)
						defer tick.Stop()
						for n := range b.N {
							if n > 0 {
								<-tick.C
							}
							c := &store.Commit{
								Key:       key,
								ID:        fmt.Sprintf("c%016x", n),
								Expect:    at,
								User:      "u",
								Fence:     fence,
								Process:   "p",
								UpdatedAt: time.Now(),
								Records:   [][]byte{[]byte("a few words of text")},
							}
							begun := time.Now()
							if err := s.Commit(context.Background(), c); err != nil {
								b.Error(err)
								return
							}
							took := time.Since(begun)
							begun = time.Now()
							if _, err := other.Records(context.Background(), key,
								store.Cursor{Number: at.Next - 1, Tag: tagAt(at)}, 10); err != nil {
								b.Error(err)
								return
							}
							mu.Lock()
							commits, reads = append(commits, took), append(reads, time.Since(begun))
							mu.Unlock()
							at = store.Position{Fence: fence, Next: at.Next + 1, ETag: c.ID}
						}
					})
				}
				all.Wait()
				for name, list := range map[string][]time.Duration{"commit": commits, "read": reads} {
					slices.Sort(list)
					for _, p := range []int{50, 99} {
						b.ReportMetric(float64(list[len(list)*p/100].Microseconds()), fmt.Sprintf("%s-p%d-us", name, p))
					}
				}
			})
		}
	}
}

// tagAt is the tag of the last record before a position; empty before the first.
func tagAt(p store.Position) string {
	if p.Next == 1 {
		return ""
	}
	return p.Fence.Tag()
}
