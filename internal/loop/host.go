package loop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/pace"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The parts that the runs of a process share: the configuration, and the few calls of the
// store that every run makes in the same way.

// Host is what the runs of a process share: the configuration, and the one door to the
// store. It knows no single run.
type Host struct {
	Config Config
	Read   thread.Reader
	// Process names this process among the owners of threads.
	Process string
	lease   lease
	// Sharing is how many processes share the runs of those that were lost, as far as is known; 0 before
	// they were counted.
	Sharing atomic.Int64
	// slowness is that of the store; nil if nobody asks for it.
	slowness *journal.Slowness

	Context context.Context
	Stop    context.CancelCauseFunc
	Tasks   sync.WaitGroup // the goroutines of leases, takeovers and runs, and of tools, which may outlive their call
	// Writers are the goroutines of the runs' writers, each of which needs one only for a
	// moment.
	Writers *routine.Pool
	// Draining is closed when nothing new may start.
	Draining chan struct{}
}

// lease is the process's claim to what it owns.
type lease interface {
	// HeldSince reports whether it was held without a break from t until now.
	HeldSince(t clock.Moment) bool
}

// warmWriters is how many goroutines wait for something to write. With what they have on
// their stacks, they take some 100 KB.
const warmWriters = 16

// ErrStopped is the cause that ends runs at a shutdown.
var ErrStopped = errors.New("the server stops")

// NewHost returns the host of a configuration, for a process that keeps a lease.
func NewHost(cfg Config, process string, l lease) *Host {
	cfg.Observer = observe.Join(cfg.Observer)
	if cfg.Ended == nil {
		cfg.Ended = func(store.ThreadKey) {}
	}
	if cfg.Circuit == nil {
		cfg.Circuit = closed{}
	}
	if cfg.Pace == nil {
		cfg.Pace = pace.New(cfg.Random)
	}
	h := &Host{
		Config:   cfg,
		Read:     thread.Reader{Store: cfg.Store, Kept: thread.NewKept()},
		Process:  process,
		lease:    l,
		Draining: make(chan struct{}),
	}
	if cfg.DeltaWindow == AutoWindow {
		h.slowness = &journal.Slowness{}
	}
	h.Context, h.Stop = context.WithCancelCause(context.Background())
	context.AfterFunc(h.Context, h.Read.Kept.Close)
	h.Writers = routine.NewPool(h.Context, warmWriters)
	return h
}

// Aside returns a host with another configuration, for one side run.
func (h *Host) Aside(cfg Config) *Host {
	return &Host{
		Config:   cfg,
		Read:     thread.Reader{Store: cfg.Store},
		Process:  h.Process,
		lease:    h.lease,
		Context:  h.Context,
		Stop:     h.Stop,
		Writers:  h.Writers,
		Draining: h.Draining,
	}
}

// Stopping reports whether a shutdown has begun.
func (h *Host) Stopping() bool {
	select {
	case <-h.Draining:
		return true
	default:
		return false
	}
}

// Commit tries once to commit, and reports that to the observer. Every commit of the
// engine goes through it. The error is the store's.
func (h *Host) Commit(ctx context.Context, at holdfast.Iteration, c *store.Commit) error {
	began := clock.Now()
	crashPoint("before", c)
	err := h.Config.Store.Commit(ctx, c)
	crashPoint("after", c)
	if err == nil {
		h.Read.Kept.Committed(c)
	}
	h.Config.Observer.Committed(at, c, began.Ran(), err)
	return err
}

// CommitAlone tries once to commit on a context that does not end with the request's. If
// the commit was not answered, it reads what became of it. known is false if that could
// not be read: the commit may have landed, or may land yet.
func (h *Host) CommitAlone(ctx context.Context, at holdfast.Iteration, c *store.Commit) (known bool, err error) {
	if ctx.Err() != nil {
		return true, context.Cause(ctx) // nothing has been sent
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Config.StoreTimeout)
	defer cancel()
	defer context.AfterFunc(h.Context, cancel)()
	err = h.Commit(ctx, at, c)
	if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) ||
		errors.Is(err, store.ErrInvalid) {
		return true, err
	}
	head, lost := h.Config.Store.Head(ctx, c.Key)
	switch {
	case lost == nil && head.ETag == c.ID:
		return true, nil
	case lost == nil, errors.Is(lost, store.ErrNotFound):
		return true, err
	}
	return false, err
}

// HandOver tells the other processes that this one never writes to the thread again. If
// nobody hears it, the thread is found when this process has retired.
func (h *Host) HandOver(key store.ThreadKey) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.Config.Store.HandOver(ctx, h.Process, key); err != nil {
		h.Config.Log.Warn("a run could not be handed over; it continues when this server has stopped",
			"thread", key.Thread, "error", err)
	}
}
