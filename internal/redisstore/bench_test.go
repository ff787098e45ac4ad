package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// benchClients is how many clients write in parallel, each to its own thread.
const benchClients = 50

// BenchmarkCommit compares a fenced commit of 2 KB with the same writes without
// any check, through the same client: as a transaction, and as a bare pipeline.
func BenchmarkCommit(b *testing.B) {
	s, err := Open(context.Background(), redistest.Start(b, "--appendonly", "yes").URL()+"?pool_size=64", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	record := make([]byte, 2048)
	for i := range record {
		record[i] = byte(rand.Uint32())
	}
	rounds := 0 // a benchmark is run several times, each time with new threads
	b.Run("fenced", func(b *testing.B) {
		rounds++
		round := rounds
		heads := make([]store.Head, benchClients)
		spread(b, func(client int) error {
			h := &heads[client]
			if h.Next == 0 {
				*h = store.Head{Key: store.ThreadKey{Thread: fmt.Sprint(round, "-", client)}, Next: 1}
			}
			c := &store.Commit{
				Key:    h.Key,
				ID:     fmt.Sprintf("c%016x", h.Next),
				Expect: h.Position(),
				User:   "u",
				Fence: store.Fence{
					Epoch: 1,
					Nonce: "0123456789abcdef",
				},
				Process:   "p",
				UpdatedAt: time.Now(),
				Records:   [][]byte{record},
			}
			if err := s.Commit(context.Background(), c); err != nil {
				return err
			}
			h.Fence, h.ETag, h.Next = c.Fence, c.ID, h.Next+1
			return nil
		})
	})
	unchecked := func(pipeline func() redis.Pipeliner) func(b *testing.B) {
		return func(b *testing.B) {
			rounds++
			round := rounds
			var next [benchClients]int64
			spread(b, func(client int) error {
				pipe := pipeline()
				tag := fmt.Sprintf("%d/%d", round, client)
				next[client]++
				i := next[client]
				pipe.XAdd(context.Background(),
					&redis.XAddArgs{Stream: s.keys.log(tag), ID: fmt.Sprint(i, "-0"), Values: []any{"", record}})
				c := &store.Commit{
					ID:        fmt.Sprintf("c%016x", i),
					User:      "u",
					Fence:     store.Fence{Epoch: 1, Nonce: "0123456789abcdef"},
					Process:   "p",
					UpdatedAt: time.Now(),
				}
				pipe.HSet(context.Background(), s.keys.thread(tag), "h", appendHead(nil, c, uint64(i)))
				_, err := pipe.Exec(context.Background())
				return err
			})
		}
	}
	b.Run("transaction without checks", unchecked(s.client.TxPipeline))
	b.Run("pipeline without checks", unchecked(s.client.Pipeline))
}

// spread calls f b.N times in total, from all clients.
func spread(b *testing.B, f func(client int) error) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for client := range benchClients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(client); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
