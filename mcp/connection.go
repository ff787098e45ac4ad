package mcp

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// The connection to a server, seen from its tools: there is one or there is none. A call
// waits for one that was lost only now.

// connection is the connection that there is to a server, and those before it until their calls
// have ended.
type connection struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	current *session
	alive   map[*session]bool
	changed chan struct{} // closed when current or problem has changed
	hope    time.Time     // until when it is waited for a connection if there is none
	problem error         // why there is no connection
}

// newConnection returns one whose calls wait for the first connection until hope has ended.
func newConnection(hope time.Time) *connection {
	c := &connection{alive: map[*session]bool{}, changed: make(chan struct{}), hope: hope}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// settled is how long a connection has to last for the next attempt to be made at once,
// and how long after its loss calls wait for another.
const settled = 10 * time.Second

// errClosed is the error of calls after Close.
var errClosed = errors.New("the server is not used any more")

// moment is how a connection is at a moment.
type moment struct {
	current *session
	changed <-chan struct{} // closed when the moment is over
	hope    time.Time
	problem error
}

func (c *connection) now() moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return moment{current: c.current, changed: c.changed, hope: c.hope, problem: c.problem}
}

// session returns the connection to use. It waits for one if there was none yet, or the last
// one was lost only now. A server that is down for longer fails its calls at once.
func (c *connection) session(ctx context.Context) (*session, error) {
	for {
		m := c.now()
		switch {
		case c.ctx.Err() != nil:
			return nil, errClosed
		case m.current != nil && !m.current.dead():
			return m.current, nil
		case m.current != nil: // the manager is about to notice
			m.hope = time.Now().Add(settled)
		}
		if err := c.outlast(ctx, m); err != nil {
			return nil, err
		}
	}
}

// errNotYet is the error of a server that could not be connected to in time.
var errNotYet = errors.New("it does not answer")

// outlast waits until a moment is over. It returns an error if that does not happen before
// its hope ends.
func (c *connection) outlast(ctx context.Context, m moment) error {
	t := time.NewTimer(time.Until(m.hope))
	defer t.Stop()
	select {
	case <-m.changed:
		return nil
	case <-t.C:
		return cmp.Or(m.problem, errNotYet)
	case <-c.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add takes in a connection whose end Close brings about.
func (c *connection) add(x *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive[x] = true
}

// attempted notes how an attempt to connect ended. A new connection takes the place of the
// old one, which is returned. said is whether the last attempt has failed in the same way.
func (c *connection) attempted(x *session, err error) (old *session, said bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old = c.current
	said = err != nil && c.problem != nil && err.Error() == c.problem.Error()
	switch {
	case x != nil:
		c.current, c.problem = x, nil
	case old == nil || old.dead():
		c.current, c.problem = nil, err
	default:
		old = nil // it goes on
	}
	c.change()
	return old, said
}

// lost notes that a connection cannot be used any more. Calls wait for the next one.
func (c *connection) lost(x *session, err error) {
	c.mu.Lock()
	c.current, c.problem, c.hope = nil, err, time.Now().Add(settled)
	c.change()
	c.mu.Unlock()
	c.retire(x)
}

// change tells those who wait that something has changed. The caller holds mu.
func (c *connection) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// start runs f in a goroutine that close waits for; false if the server is closed.
func (c *connection) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.wg.Go(f)
	return true
}

// retire lets a session end when its calls have.
func (c *connection) retire(x *session) {
	c.wg.Go(func() {
		x.retire()
		c.mu.Lock()
		delete(c.alive, x)
		c.mu.Unlock()
	})
}

// leave ends the connection that there is.
func (c *connection) leave() {
	c.mu.Lock()
	x := c.current
	c.current = nil
	c.mu.Unlock()
	if x != nil {
		_ = x.Close()
		c.retire(x)
	}
}

// close ends all connections. Calls in progress fail.
func (c *connection) close() {
	c.mu.Lock()
	c.cancel(errClosed)
	for x := range c.alive {
		_ = x.Close()
	}
	c.mu.Unlock()
}
