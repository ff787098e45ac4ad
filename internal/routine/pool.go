// Package routine helps with goroutines that a server has many of: a pool in which they stay,
// stacks that are large enough at once, a gate that lets a few through at a time, panics as
// errors, and ends that do not wait for ever.
package routine

import (
	"context"
	"sync"
)

// Pool runs short pieces of work on goroutines that stay for the next one: the stack of a new
// goroutine grows, and is copied, several times before it is large enough to write to a store.
// Their work must not need ctx, whose end only sends away those that wait.
type Pool struct {
	ctx     context.Context
	work    chan func()   // unbuffered: somebody waits for it, or nobody
	waiting chan struct{} // has room for as many as may wait
	running sync.WaitGroup
}

// NewPool returns a Pool in which so many goroutines wait at most. When ctx is done, none does
// any more.
func NewPool(ctx context.Context, most int) *Pool {
	return &Pool{ctx: ctx, work: make(chan func()), waiting: make(chan struct{}, most)}
}

// Go calls f on a goroutine: one that waits or, if there is none, a new one.
func (p *Pool) Go(f func()) {
	select {
	case p.work <- f:
	default:
		p.running.Go(func() { p.run(f) })
	}
}

// run does f, and then what comes, until there is nothing to wait for.
func (p *Pool) run(f func()) {
	for f != nil {
		f()
		f = p.next()
	}
}

// next waits for work; nil if enough goroutines do, or none must.
func (p *Pool) next() func() {
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return nil
	}
	select {
	case f := <-p.work:
		return f
	case <-p.ctx.Done():
		return nil
	}
}

// Wait waits until no goroutine is left, after ctx is done and all work is.
func (p *Pool) Wait() { p.running.Wait() }
