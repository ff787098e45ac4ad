// Package loop runs agents: it decides what a POST means, runs iterations of
// model call and tools, commits what they produce, and takes over what a dead
// process left behind. It knows no HTTP and no particular store.
package loop

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Frequency says which loop checkpoints are listed. The head moves in every
// commit whatever it is.
type Frequency string

// The frequencies.
const (
	PerIteration Frequency = "per_iteration"
	PerTurn      Frequency = "per_turn"
	Manual       Frequency = "manual"
)

// Config is what an Engine needs. Every member must be set, except where it
// says otherwise.
type Config struct {
	Store  holdfast.Store
	Agents []holdfast.Agent // the first is the default
	// Recover: runs cut off by a crash are continued; else they are ended with
	// RUN_ERROR cut_off and wait for an empty-messages POST.
	Recover   bool
	Frequency Frequency
	// KeepCheckpoints is how many checkpoints of a thread stay listed.
	KeepCheckpoints int
	// NoPendingWrites: results of pure and idempotent tools are saved when all
	// calls of their answer are done, not the moment they exist. Those of others
	// always are.
	NoPendingWrites bool
	// Lease is how long a silent process counts as alive.
	Lease time.Duration
	// MaxRuns bounds the runs of this process at a time, MaxParallelTools the
	// calls of one iteration that run at a time.
	MaxRuns          int
	MaxParallelTools int
	// ModelTries is how often a model call is tried in all; ModelTriesOf is that of
	// single agents, by name.
	ModelTries   int
	ModelTriesOf map[string]int
	// StoreTimeout is how long a run waits for a store that does not answer
	// before it is given up here, to be recovered later.
	StoreTimeout time.Duration
	// StopOnStoreFailure gives a run up at the first commit that fails.
	StopOnStoreFailure bool
	// SchemaMode is what becomes of a run whose checkpoint was written with other
	// middleware states; empty means SchemaWarn. ResetNewerStates: a state of a
	// version that is not known here begins anew, and the newer one is set aside;
	// else the run is refused.
	SchemaMode       SchemaMode
	ResetNewerStates bool
	// BufferBytes bounds the deltas of a run that wait to be committed, and
	// TailBytes the acknowledged records kept in memory for its watchers.
	BufferBytes int
	// DeltaWindow is how long a model's deltas may wait for more before they are
	// committed and shown; 0: not at all.
	DeltaWindow time.Duration
	// KeepAlive is how long a stream may be silent; then it yields an empty
	// batch.
	KeepAlive time.Duration
	TailBytes int
	// WarnBytes and MaxBytes bound a thread; 0 is no bound. A run on a thread with
	// more than the first says so once; with more than the second it stops, and
	// nothing is lost.
	WarnBytes int64
	MaxBytes  int64
	// Ended is called when a run of the thread has ended here, and must return at once;
	// nil: nobody needs to know.
	Ended func(holdfast.ThreadKey)
	Log   *slog.Logger
	Now   func() time.Time
	// NewID makes a random id, unique and unguessable; prefix says of what.
	NewID    func(prefix string) string
	Observer Observer
}

// MaxClaims is how often a run is taken over without making progress.
const MaxClaims = 3

// Engine runs agents. One process has one.
type Engine struct {
	cfg     Config
	Read    thread.Reader
	agents  map[string]*holdfast.Agent
	specs   map[string][]holdfast.ToolSpec // of each agent's tools
	chains  map[string]*hooks.Chain
	schemas map[string]*thread.Schema
	process string
	seed    maphash.Seed
	// locks serialise what this process decides about one thread.
	locks [256]sync.Mutex
	slots chan struct{}
	turns chan struct{} // see turn

	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // sweeper, runs, tools that outlive their call

	deaf func() // ends what Start asked of the store: to hear of posts

	mu       sync.Mutex
	runs     map[holdfast.ThreadKey]*run
	draining chan struct{} // closed when nothing new may start
	closed   chan struct{} // closed when streams must end
}

// errStopped is the cause that ends runs at a shutdown.
var errStopped = errors.New("the server stops")

// New makes an Engine. Call Start before anything else. It returns an error for
// agents whose middleware registers two states of one name.
func New(cfg Config) (*Engine, error) {
	e := &Engine{
		cfg:      cfg,
		Read:     thread.Reader{Store: cfg.Store},
		agents:   make(map[string]*holdfast.Agent, len(cfg.Agents)),
		specs:    make(map[string][]holdfast.ToolSpec, len(cfg.Agents)),
		chains:   make(map[string]*hooks.Chain, len(cfg.Agents)),
		schemas:  make(map[string]*thread.Schema, len(cfg.Agents)),
		process:  cfg.NewID("p"),
		seed:     maphash.MakeSeed(),
		slots:    make(chan struct{}, cfg.MaxRuns),
		turns:    make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
		runs:     make(map[holdfast.ThreadKey]*run),
		draining: make(chan struct{}),
		closed:   make(chan struct{}),
		deaf:     func() {},
	}
	if cfg.Ended == nil {
		e.cfg.Ended = func(holdfast.ThreadKey) {}
	}
	for i := range cfg.Agents {
		a := &cfg.Agents[i]
		e.agents[a.Name] = a
		specs := make([]holdfast.ToolSpec, len(a.Tools))
		for n, t := range a.Tools {
			specs[n] = t.Spec()
		}
		// Without room at the end: who appends to it, copies it.
		e.specs[a.Name] = slices.Clip(specs)
		e.chains[a.Name] = hooks.New(a, cfg.Log, cfg.Observer.HookFailed)
		s, err := thread.NewSchema(a)
		if err != nil {
			return nil, fmt.Errorf("agent %q: %w", a.Name, err)
		}
		e.schemas[a.Name] = s
	}
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	return e, nil
}

// Start announces the process and begins to look for runs that a dead process
// left behind. It returns when the engine can serve.
func (e *Engine) Start(ctx context.Context) error {
	if err := e.cfg.Store.Announce(ctx, e.process, e.cfg.Lease); err != nil {
		return thread.StoreError(err)
	}
	e.deaf = e.cfg.Store.OnPost(e.posted)
	e.wg.Go(e.keepLease)
	e.wg.Go(e.sweep)
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
	e.deaf()
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

func (e *Engine) stopping() bool {
	select {
	case <-e.draining:
		return true
	default:
		return false
	}
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

// local returns the thread's run if this process has it.
func (e *Engine) local(key holdfast.ThreadKey) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[key]
}

// modelTries returns how often a model call of the agent is tried.
func (e *Engine) modelTries(agent string) int {
	if n, own := e.cfg.ModelTriesOf[agent]; own {
		return n
	}
	return e.cfg.ModelTries
}

// Agent returns the named agent; "" is the default.
func (e *Engine) Agent(name string) (*holdfast.Agent, error) {
	if name == "" {
		return &e.cfg.Agents[0], nil
	}
	a, ok := e.agents[name]
	if !ok {
		return nil, errAgentNotFound(name)
	}
	return a, nil
}
