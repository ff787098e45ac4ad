// Package process is a process in a test: a server or an engine that can be killed, waited for
// and followed by another one. Its store, its agents and its log are bound to its life. Its
// goroutines cannot be stopped as a kill would, but after its death they can no longer change
// anything that a test sees: they write nothing and call nothing that belongs to the test.
package process

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Limit is how long a process may take to end. If it takes longer, something ignores its
// context.
const Limit = 10 * time.Second

// Process is one process, from its start to its death. There is no gentler end, so whatever
// survives it survives a crash.
type Process struct {
	// Store is the store as the process sees it.
	Store *Store
	// Log writes without times, as long as the process is alive.
	Log *slog.Logger

	life     life
	once     sync.Once
	shutdown func(context.Context) error
	gone     chan struct{} // closed when none of it is running any more
	err      error         // what was left behind; read after gone
}

// New returns a process that is to work on a store and to write to a log.
func New(db store.Store, log io.Writer) *Process {
	p := &Process{Store: &Store{Store: db, Killed: true}, life: make(life), gone: make(chan struct{})}
	p.Log = slog.New(slog.NewTextHandler(&mortalLog{log, p.life}, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	return p
}

// Agent returns an agent with all its parts bound to the process.
func (p *Process) Agent(a holdfast.Agent) holdfast.Agent { return p.life.agent(a) }

// Start starts what the process runs, given by how it is started and shut down.
func (p *Process) Start(ctx context.Context, start, shutdown func(context.Context) error) error {
	p.shutdown = shutdown
	if err := start(ctx); err != nil {
		return errors.Join(err, shutdown(ctx))
	}
	return nil
}

// Dead returns a channel that is closed when the process dies.
func (p *Process) Dead() <-chan struct{} { return p.life }

// Crash kills the process once its runs have passed to the store what they have.
func (p *Process) Crash() {
	if !p.life.over() {
		p.Store.rest()
	}
	p.Kill()
}

// Kill makes the process die now: it no longer stores, logs or calls anything. It does not
// wait, because a hook of this very process may have called it.
func (p *Process) Kill() {
	p.once.Do(func() {
		close(p.life)
		p.Store.Dead.Store(true)
		go func() {
			defer close(p.gone)
			rest, cancel := context.WithTimeout(context.Background(), Limit)
			defer cancel()
			p.err = End(rest, p.shutdown)
		}()
	})
}

// End cuts off what is running, waits until it has noticed, as long as the context lasts, and
// says what is left.
func End(ctx context.Context, shutdown func(context.Context) error) error {
	cut, cancel := context.WithCancel(ctx)
	cancel()
	// An error about the cut is what this is for.
	_ = shutdown(cut)
	return shutdown(ctx)
}

// Wait returns when nothing of a killed process is running any more.
func (p *Process) Wait() error {
	late := time.NewTimer(2 * Limit)
	defer late.Stop()
	select {
	case <-p.gone:
		return p.err
	case <-late.C:
		return errors.New("a hook, a tool or a model is still running: it ignores its context")
	}
}
