package quota

import (
	"context"
	"slices"
	"sync"
)

// guard is a lock for many readers or one writer that is held while a store is asked. Unlike a
// [sync.RWMutex], it lets a caller stop waiting for it, and callers get it in the order in which they
// have come: readers that come after a writer wait for it, and a writer that comes back at once does
// not pass readers that wait.
type guard struct {
	mu      sync.Mutex
	readers int // -1 while a writer has it
	waiting []*turn
}

// turn is a caller that waits.
type turn struct {
	writes bool
	taken  chan struct{} // closed when the caller has the lock
}

// read takes the lock with other readers.
func (g *guard) read(ctx context.Context) error { return g.take(ctx, false) }

// write takes the lock alone.
func (g *guard) write(ctx context.Context) error { return g.take(ctx, true) }

// take waits for the lock.
func (g *guard) take(ctx context.Context, writes bool) error {
	t := &turn{writes, make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, t)
	g.admit()
	waits := slices.Contains(g.waiting, t)
	g.mu.Unlock()
	if !waits {
		return nil
	}
	select {
	case <-t.taken:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting, t)
	if at < 0 { // it has got the lock meanwhile
		return nil
	}
	g.waiting = slices.Delete(g.waiting, at, at+1)
	g.admit() // readers that have waited for this writer
	return ctx.Err()
}

// free gives the lock back.
func (g *guard) free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers = max(g.readers-1, 0)
	g.admit()
}

// admit gives the lock to those who can have it, in their order. The caller holds mu.
func (g *guard) admit() {
	for len(g.waiting) > 0 {
		t := g.waiting[0]
		switch {
		case !t.writes && g.readers >= 0:
			g.readers++
		case t.writes && g.readers == 0:
			g.readers = -1
		default:
			return
		}
		g.waiting = slices.Delete(g.waiting, 0, 1)
		close(t.taken)
	}
}
