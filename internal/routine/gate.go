package routine

import (
	"context"
	"time"
)

// Gate lets many who come at once through a few at a time, as long as that does not take long.
// A call that waits for something far away does not keep the processor busy, so it keeps
// nobody out: the first in line waits for a place only so long, and then goes without one.
type Gate struct {
	places   chan struct{} // has room for as many as are let through
	first    chan struct{} // holds the first in line
	patience time.Duration
}

// NewGate returns a Gate of so many places, for a place in which the first in line waits that
// long.
func NewGate(places int, patience time.Duration) *Gate {
	return &Gate{places: make(chan struct{}, places), first: make(chan struct{}, 1), patience: patience}
}

// Enter waits until it is the caller's turn or ctx is done, and returns what gives the
// place back; it may be called more than once.
func (g *Gate) Enter(ctx context.Context) (leave func()) {
	select {
	case g.places <- struct{}{}:
		return g.leave()
	default:
	}
	select {
	case g.first <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	defer func() { <-g.first }()
	t := time.NewTimer(g.patience)
	defer t.Stop()
	select {
	case g.places <- struct{}{}:
		return g.leave()
	case <-t.C:
	case <-ctx.Done():
	}
	return func() {}
}

func (g *Gate) leave() func() {
	left := false
	return func() {
		if !left {
			left = true
			<-g.places
		}
	}
}
