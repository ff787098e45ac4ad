package owner

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// house is what all who begin runs, find them and end them share. It knows no single run.
type house struct {
	host *loop.Host // of the runs
	cfg  *loop.Config
	read thread.Reader
	*agents.Serving
	// replaced receives when the agents were replaced, so that the others are told.
	replaced chan struct{}
	used     func() // called when the agents were replaced: a run may have waited for the new ones
	// behind is set when this process may own a thread that it does not run any more: a run has
	// left, or it is not known whether one has begun.
	behind *atomic.Bool
	// process names this process among the owners of threads.
	process string
	contact *contact // with the store
	formats *dataformat.Agreement
	schemas *schemas
	fleet   *fleet

	ctx  context.Context
	stop context.CancelCauseFunc
	wg   *sync.WaitGroup // the goroutines of leases, takeovers and runs
	// writers are goroutines for what takes only a moment.
	writers *routine.Pool
	// draining is closed when nothing new may start.
	draining chan struct{}
}

// newHouse returns the house of a configuration.
func newHouse(cfg loop.Config) (*house, error) {
	process, contact := cfg.NewID("p"), newContact(cfg.Lease)
	h := houseOf(loop.NewHost(cfg, process, contact), contact)
	h.formats = dataformat.New(cfg.Store, cfg.Alone, cfg.DataFormat, cfg.Log, cfg.FormatAgreed)
	h.fleet = newFleet(cfg.Store, process, cfg.Lease)
	h.replaced = make(chan struct{}, 1)
	h.Serving = agents.New(agents.Config{
		ModelTries: cfg.ModelTries,
		MaxMedia:   cfg.MaxMedia,
		Log:        cfg.Log,
		HookFailed: h.cfg.Observer.HookFailed,
	}, h.noteReplaced)
	h.schemas = &schemas{cfg: h.cfg, serving: h.Serving}
	first, err := h.NewAgents(cfg.Agents, cfg.ModelTriesOf, cfg.MaxMediaOf)
	if err != nil {
		return nil, err
	}
	h.Begin(first)
	h.cfg.Agents, h.cfg.ModelTriesOf, h.cfg.MaxMediaOf = nil, nil, nil // first has them
	return h, nil
}

// houseOf returns a house of runs that have a host.
func houseOf(h *loop.Host, c *contact) *house {
	return &house{
		host:     h,
		cfg:      &h.Config,
		read:     h.Read,
		process:  h.Process,
		contact:  c,
		behind:   new(atomic.Bool),
		ctx:      h.Context,
		stop:     h.Stop,
		wg:       &h.Tasks,
		writers:  h.Writers,
		draining: h.Draining,
	}
}

// aside returns a house for one side run, with another configuration.
func (h *house) aside(cfg loop.Config) *house {
	alone := houseOf(h.host.Aside(cfg), h.contact)
	alone.formats, alone.used = h.formats, h.used
	alone.schemas = &schemas{cfg: alone.cfg, serving: h.Serving}
	return alone
}

// noteReplaced is called when the agents were replaced.
func (h *house) noteReplaced() {
	select {
	case h.replaced <- struct{}{}:
	default: // they are told of the newest ones anyway
	}
	h.used()
}

// stopping reports whether a shutdown has begun.
func (h *house) stopping() bool { return h.host.Stopping() }

// Commit tries once to commit, and reports that to the observer.
func (h *house) Commit(ctx context.Context, at holdfast.Iteration, c *store.Commit) error {
	return h.host.Commit(ctx, at, c)
}

// DataFormat returns which data format is written, as was agreed upon the last time.
func (h *house) DataFormat() dataformat.Status { return h.formats.Status() }
