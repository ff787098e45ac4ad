package quota

import (
	"context"
	"sync"
)

// guard is a lock for many readers or one writer that is held while a store is asked. Unlike a
// [sync.RWMutex], it lets a caller stop waiting for it.
type guard struct {
	mu      sync.Mutex
	readers int // -1 while a writer has it
	writers int // that wait; readers that come later wait for them
	freed   chan struct{}
}

// read takes the lock with other readers.
func (g *guard) read(ctx context.Context) error {
	return g.take(ctx, func() bool {
		if g.readers < 0 || g.writers > 0 {
			return false
		}
		g.readers++
		return true
	})
}

// write takes the lock alone.
func (g *guard) write(ctx context.Context) error {
	g.mu.Lock()
	g.writers++
	g.mu.Unlock()
	err := g.take(ctx, func() bool {
		if g.readers != 0 {
			return false
		}
		g.readers = -1
		return true
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writers--
	if err != nil {
		g.wake() // readers that have waited for this writer
	}
	return err
}

// take waits until free, which is called with the lock of the guard, has taken it.
func (g *guard) take(ctx context.Context, free func() bool) error {
	for {
		g.mu.Lock()
		taken := free()
		if g.freed == nil {
			g.freed = make(chan struct{})
		}
		freed := g.freed
		g.mu.Unlock()
		if taken {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// free gives the lock back.
func (g *guard) free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers = max(g.readers-1, 0)
	g.wake()
}

// wake has everybody look who waits.
func (g *guard) wake() {
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}
