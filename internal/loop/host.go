package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// The parts that the runs of a process share: the configuration, the agents, which are in
// agents.go, and the few calls of the store that every run makes in the same way.

// host is what the runs of a process share: the configuration, the agents, and the one door
// to the store. It knows no single run.
type host struct {
	cfg  Config
	read thread.Reader
	*agents.Serving
	// replaced receives when the agents were replaced, so that the others are told.
	replaced chan struct{}
	used     func() // called when the agents were replaced: a run may have waited for the new ones
	// process names this process among the owners of threads.
	process string
	contact *contact // with the store
	formats *dataformat.Agreement
	schemas *schemas
	fleet   *fleet

	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // the goroutines of leases, takeovers and runs, and of tools, which may outlive their call
	// writers are the goroutines of the runs' writers, each of which needs one only for a
	// moment.
	writers *routine.Pool
	// draining is closed when nothing new may start.
	draining chan struct{}
}

// warmWriters is how many goroutines wait for something to write. With what they have on
// their stacks, they take some 100 KB.
const warmWriters = 16

// errStopped is the cause that ends runs at a shutdown.
var errStopped = errors.New("the server stops")

// newHost returns the host of a configuration.
func newHost(cfg Config) (*host, error) {
	h := &host{
		cfg:      cfg,
		read:     thread.Reader{Store: cfg.Store},
		process:  cfg.NewID("p"),
		contact:  newContact(cfg.Lease),
		formats:  dataformat.New(cfg.Store, cfg.Alone, cfg.DataFormat, cfg.Log, cfg.FormatAgreed),
		draining: make(chan struct{}),
		replaced: make(chan struct{}, 1),
	}
	h.schemas = &schemas{cfg: &h.cfg}
	h.fleet = newFleet(cfg.Store, h.process)
	h.cfg.Observer = observe.Join(cfg.Observer)
	if cfg.Ended == nil {
		h.cfg.Ended = func(store.ThreadKey) {}
	}
	if cfg.Circuit == nil {
		h.cfg.Circuit = closed{}
	}
	h.Serving = agents.New(agents.Config{
		ModelTries: cfg.ModelTries,
		MaxMedia:   cfg.MaxMedia,
		Log:        cfg.Log,
		HookFailed: h.cfg.Observer.HookFailed,
	}, h.noteReplaced)
	h.schemas.serving = h.Serving
	agents, err := h.NewAgents(cfg.Agents, cfg.ModelTriesOf, cfg.MaxMediaOf)
	if err != nil {
		return nil, err
	}
	h.Begin(agents)
	h.cfg.Agents, h.cfg.ModelTriesOf, h.cfg.MaxMediaOf = nil, nil, nil // agents has them
	h.ctx, h.stop = context.WithCancelCause(context.Background())
	h.writers = routine.NewPool(h.ctx, warmWriters)
	return h, nil
}

// noteReplaced is called when the agents were replaced.
func (h *host) noteReplaced() {
	select {
	case h.replaced <- struct{}{}:
	default: // they are told of the newest ones anyway
	}
	h.used()
}

// stopping reports whether a shutdown has begun.
func (h *host) stopping() bool {
	select {
	case <-h.draining:
		return true
	default:
		return false
	}
}

// Commit tries once to commit, and reports that to the observer. Every commit of the
// engine goes through it. The error is the store's.
func (h *host) Commit(ctx context.Context, at holdfast.Iteration, c *store.Commit) error {
	began := clock.Now()
	crashPoint("before", c)
	err := h.cfg.Store.Commit(ctx, c)
	crashPoint("after", c)
	h.cfg.Observer.Committed(at, c, began.Ran(), err)
	return err
}

// commitAlone tries once to commit on a context that does not end with the request's. If
// the commit was not answered, it reads what became of it. known is false if that could
// not be read: the commit may have landed, or may land yet.
func (h *host) commitAlone(ctx context.Context, at holdfast.Iteration, c *store.Commit) (known bool, err error) {
	if ctx.Err() != nil {
		return true, context.Cause(ctx) // nothing has been sent
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.cfg.StoreTimeout)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	err = h.Commit(ctx, at, c)
	if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) ||
		errors.Is(err, store.ErrInvalid) {
		return true, err
	}
	head, lost := h.cfg.Store.Head(ctx, c.Key)
	switch {
	case lost == nil && head.ETag == c.ID:
		return true, nil
	case lost == nil, errors.Is(lost, store.ErrNotFound):
		return true, err
	}
	return false, err
}

// handOver tells the other processes that this one never writes to the thread again. If
// nobody hears it, the thread is found when this process has retired.
func (h *host) handOver(key store.ThreadKey) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.cfg.Store.HandOver(ctx, h.process, key); err != nil {
		h.cfg.Log.Warn("a run could not be handed over; it continues when this server has stopped",
			"thread", key.Thread, "error", err)
	}
}

// DataFormat returns which data format is written, as was agreed upon the last time.
func (h *host) DataFormat() dataformat.Status { return h.formats.Status() }
