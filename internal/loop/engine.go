// Package loop runs agents: it decides what a POST means, runs iterations of
// model call and tools, commits what they produce, and takes over what a dead
// process left behind. It knows no HTTP and no particular store.
package loop

import (
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Engine runs agents: it lists what runs in this process, and who watches. One process
// has one.
type Engine struct {
	*host
	streams *streams
	seed    maphash.Seed
	// locks serialise what this process decides about one thread.
	locks [256]sync.Mutex
	slots chan struct{}
	turns chan struct{} // see turn

	stopListening func() // ends what Start asked of the store: to hear of posts

	mu     sync.Mutex
	runs   map[holdfast.ThreadKey]*run
	closed chan struct{} // closed when streams must end
}

// New makes an Engine. Call Start before anything else. It returns an error for
// agents whose middleware registers two states of one name.
func New(cfg Config) (*Engine, error) {
	h, err := newHost(cfg)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		host:          h,
		seed:          maphash.MakeSeed(),
		slots:         make(chan struct{}, cfg.MaxRuns),
		turns:         make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
		runs:          make(map[holdfast.ThreadKey]*run),
		closed:        make(chan struct{}),
		stopListening: func() {},
	}
	e.streams = &streams{read: h.read, store: cfg.Store, live: e.feedOf, closed: e.closed, keepAlive: cfg.KeepAlive}
	return e, nil
}

// Start announces the process and begins to look for runs that a dead process
// left behind. It returns when the engine can serve.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.cfg.Store.Announce(ctx, e.process, e.cfg.Lease); err != nil {
		return thread.StoreError(err)
	}
	e.stopListening = e.cfg.Store.OnPost(e.posted)
	e.wg.Go(e.keepLease)
	e.wg.Go(e.takeOverOrphans)
	return nil
}

// Shutdown starts nothing new, lets every run come to the next boundary
// between steps, and returns when all have, or when ctx is done; then what is
// still in flight is cut, and recovered by whoever finds it. Streams end when
// Shutdown returns.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	select {
	case <-e.draining:
	default:
		close(e.draining)
	}
	runs := make([]*run, 0, len(e.runs))
	for _, r := range e.runs {
		runs = append(runs, r)
	}
	e.mu.Unlock()
	var err error
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	e.stop(errStopped)
	for _, r := range runs {
		<-r.done
	}
	e.mu.Lock()
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	e.mu.Unlock()
	e.wg.Wait()
	e.stopListening()
	retire, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(err, e.cfg.Store.Retire(retire, e.process))
}

// Ready reports whether the store answers.
func (e *Engine) Ready(ctx context.Context) error {
	if e.stopping() {
		return errShuttingDown()
	}
	if _, err := e.cfg.Store.Alive(ctx, e.process); err != nil {
		return thread.StoreError(err)
	}
	return nil
}

// Running returns how many runs this process has.
func (e *Engine) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.runs)
}

// keepLease renews the process's lease three times as often as it runs out.
func (e *Engine) keepLease() {
	tick := time.NewTicker(e.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
			err := e.cfg.Store.Announce(e.ctx, e.process, e.cfg.Lease)
			if e.ctx.Err() != nil {
				return
			}
			e.cfg.Observer.LeaseRenewed(err)
			if err != nil {
				e.cfg.Log.Warn("the lease could not be renewed", "error", err)
			}
		}
	}
}

// Lock serialises what this process decides about one thread, until unlock is
// called.
func (e *Engine) Lock(key holdfast.ThreadKey) (unlock func()) {
	m := &e.locks[maphash.Comparable(e.seed, key)%uint64(len(e.locks))]
	m.Lock()
	return m.Unlock
}

// feedOf returns the records of the thread's run while it lives in this process; nil
// else.
func (e *Engine) feedOf(key holdfast.ThreadKey) *journal.Feed {
	if r := e.local(key); r != nil {
		return r.feed
	}
	return nil
}

// local returns the thread's run if this process has it.
func (e *Engine) local(key holdfast.ThreadKey) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[key]
}

// begun is a run whose first commit here has been made.
type begun struct {
	run *run
	c   *holdfast.Commit
	seq agui.Sequencer // after the commit's records
}

// launch starts the goroutine of a run. The caller holds a slot. At a shutdown nothing
// is started: the run has an owner that is about to die, and is taken over.
func (e *Engine) launch(b *begun) {
	r, head := b.run, thread.HeadAfter(b.c)
	r.prepare(e, head, thread.RecordsOf(b.c))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping() {
		e.freeSlot()
		return
	}
	r.w = journal.New(r.writerConfig(), head, b.seq)
	e.runs[r.key] = r
	e.cfg.Observer.RunStarted(r.place(), r.resumed, r.results)
	e.wg.Go(r.main)
	r.inbox.Go(r.readInbox) // something may have been posted before it was listed
}

// unlist implements lister.
func (e *Engine) unlist(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs[r.key] == r { // the next run of the thread may have begun
		delete(e.runs, r.key)
	}
}

// takeSlot takes a place among the runs of this process; false if none is free.
func (e *Engine) takeSlot() bool {
	select {
	case e.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// freeSlot gives the place back.
func (e *Engine) freeSlot() { <-e.slots }
