package owner

import (
	"context"
	"sync"
)

// entrance lets what must not be cut off in until it is closed, and then waits for those inside.
type entrance struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // closed when nobody is left; nil while nobody waits
}

// enter reports whether the caller may go on; then it must call leave.
func (d *entrance) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.inside++
	return true
}

func (d *entrance) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	if d.inside == 0 && d.empty != nil {
		close(d.empty)
		d.empty = nil
	}
}

// close lets nobody in any more.
func (d *entrance) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// wait waits until nobody is inside, or ctx is done. It follows close.
func (d *entrance) wait(ctx context.Context) {
	d.mu.Lock()
	if d.inside == 0 {
		d.mu.Unlock()
		return
	}
	if d.empty == nil {
		d.empty = make(chan struct{})
	}
	empty := d.empty
	d.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
