package routine

import (
	"context"
	"sync"
)

// Entrance lets what must not be cut off in until it is closed, and then waits for those inside.
type Entrance struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // closed when nobody is left; nil while nobody waits
}

// Enter reports whether the caller may go on; then it must call Leave.
func (e *Entrance) Enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.inside++
	return true
}

// Leave says that one who was let in is done.
func (e *Entrance) Leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inside--
	if e.inside == 0 && e.empty != nil {
		close(e.empty)
		e.empty = nil
	}
}

// Close lets nobody in any more.
func (e *Entrance) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// Wait waits until nobody is inside, or ctx is done. It follows Close.
func (e *Entrance) Wait(ctx context.Context) {
	e.mu.Lock()
	if e.inside == 0 {
		e.mu.Unlock()
		return
	}
	if e.empty == nil {
		e.empty = make(chan struct{})
	}
	empty := e.empty
	e.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
