package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// What the engine makes of its configuration before anything runs: for each agent its
// tools, its models, its hooks, the schema of its states and the form of its answers; and
// the few calls of the store that every run makes in the same way.

// host is what the runs of a process share: the configuration, what was made of the
// agents, and the one door to the store. It knows no single run.
type host struct {
	cfg     Config
	read    thread.Reader
	agents  map[string]*holdfast.Agent
	tools   map[string]*toolboxes // of each agent
	forms   map[string]*form      // of the answers of the agents that have one
	chains  map[string]*hooks.Chain
	models  map[string]fallback.Chain
	schemas map[string]*thread.Schema
	// process names this process among the owners of threads.
	process string
	contact *contact // with the store

	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // the goroutines of leases, takeovers and runs, and of tools, which may outlive their call
	// draining is closed when nothing new may start.
	draining chan struct{}
}

// errStopped is the cause that ends runs at a shutdown.
var errStopped = errors.New("the server stops")

// newHost returns the host of a configuration.
func newHost(cfg Config) (*host, error) {
	h := &host{
		cfg:      cfg,
		read:     thread.Reader{Store: cfg.Store},
		agents:   make(map[string]*holdfast.Agent, len(cfg.Agents)),
		tools:    make(map[string]*toolboxes, len(cfg.Agents)),
		forms:    map[string]*form{},
		chains:   make(map[string]*hooks.Chain, len(cfg.Agents)),
		models:   make(map[string]fallback.Chain, len(cfg.Agents)),
		schemas:  make(map[string]*thread.Schema, len(cfg.Agents)),
		process:  cfg.NewID("p"),
		contact:  newContact(cfg.Lease),
		draining: make(chan struct{}),
	}
	h.cfg.Observer = observe.Join(cfg.Observer)
	if cfg.Ended == nil {
		h.cfg.Ended = func(store.ThreadKey) {}
	}
	if cfg.Circuit == nil {
		h.cfg.Circuit = closed{}
	}
	h.cfg.Agents = slices.Clone(cfg.Agents)
	for i := range h.cfg.Agents {
		if err := h.add(&h.cfg.Agents[i]); err != nil {
			return nil, err
		}
	}
	h.ctx, h.stop = context.WithCancelCause(context.Background())
	return h, nil
}

// add prepares what the runs of an agent need.
func (h *host) add(a *holdfast.Agent) error {
	h.agents[a.Name] = a
	a.Tools = slices.Clip(a.Tools)
	for _, m := range a.Middleware {
		a.Tools = append(a.Tools, m.Tools...)
	}
	h.tools[a.Name] = &toolboxes{agent: a, log: h.cfg.Log}
	h.models[a.Name] = fallback.ChainOf(a)
	h.chains[a.Name] = hooks.New(a, h.cfg.Log, h.cfg.Observer.HookFailed)
	s, err := thread.NewSchema(a)
	if err != nil {
		return fmt.Errorf("agent %q: %w", a.Name, err)
	}
	h.schemas[a.Name] = s
	h.forms[a.Name], err = newForm(a)
	return err
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

// modelTries returns how often one model of the agent is tried for an answer, at most.
func (h *host) modelTries(agent string) int {
	if n, own := h.cfg.ModelTriesOf[agent]; own {
		return n
	}
	return h.cfg.ModelTries
}

// maxMedia returns how many bytes of media an answer of the agent may have; 0 means any.
func (h *host) maxMedia(agent string) int {
	if n, own := h.cfg.MaxMediaOf[agent]; own {
		return n
	}
	return h.cfg.MaxMedia
}

// Agent returns the named agent, the default one for "". The error is agent_not_found.
func (h *host) Agent(name string) (*holdfast.Agent, error) {
	if name == "" {
		return &h.cfg.Agents[0], nil
	}
	a, ok := h.agents[name]
	if !ok {
		return nil, errAgentNotFound(name)
	}
	return a, nil
}

// Tools returns the specifications of an agent's tools as they are now, by name; none for an
// agent that there is not.
func (h *host) Tools(agent string) []holdfast.ToolSpec {
	if t, known := h.tools[agent]; known {
		return t.now().specs
	}
	return nil
}

// Commit tries once to commit, and reports that to the observer. Every commit of the
// engine goes through it. The error is the store's.
func (h *host) Commit(ctx context.Context, at holdfast.Iteration, c *store.Commit) error {
	began := h.cfg.Now()
	crashPoint("before", c)
	err := h.cfg.Store.Commit(ctx, c)
	crashPoint("after", c)
	h.cfg.Observer.Committed(at, c, h.cfg.Now().Sub(began), err)
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
	if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInvalid) {
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
		h.cfg.Log.Warn("a run could not be handed over; it continues when this server has stopped", "thread", key.Thread, "error", err)
	}
}
