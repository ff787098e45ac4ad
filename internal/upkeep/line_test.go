package upkeep

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// TestLine: however many runs end at once, all their logs are archived, those that ended first
// before others; and no more wait than there is room for.
func TestLine(t *testing.T) {
	l := newLine()
	for i := range maxWaiting + 1 {
		l.add(endedThread{key: store.ThreadKey{Thread: strconv.Itoa(i)}})
	}
	if first, _ := l.next(t.Context()); first.key.Thread != "0" {
		t.Errorf("thread %s is the first", first.key.Thread)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var taken atomic.Int64
	var all sync.WaitGroup
	for range archivers {
		all.Go(func() {
			for {
				if _, is := l.next(ctx); !is {
					return
				}
				if taken.Add(1) == maxWaiting-1 {
					cancel()
				}
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != maxWaiting-1 || l.waiting != nil {
		t.Errorf("%d threads were taken, %d wait", n, len(l.waiting))
	}
}
