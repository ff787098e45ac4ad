package circuit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/store"
)

// The circuits of a process: what the engine asks and reports, the log of what they become,
// and what the metrics show of them. The hints for others are in share.go.

// Model is a model that has a circuit.
type Model struct {
	// Key is what the circuit is asked for: who serves the model, what it is called there,
	// and a hash of the place and the key.
	Key string
	// Provider and Model are what logs and metrics call it. Models that are asked in
	// different places or with different keys may have the same names.
	Provider, Model string
}

// Config is what [Circuits] need.
type Config struct {
	// Models are those that have a circuit. Others are never open.
	Models []Model
	// Hints is where processes tell each other what they find out; nil means that this one
	// is alone.
	Hints store.Hints
	Log   *slog.Logger
	// Now is this process's own clock: for how long a model is not asked is nobody else's.
	Now func() time.Time
}

// Circuits are the circuits of the models of a process. All methods may be called
// concurrently, and none waits for the store.
type Circuits struct {
	cfg Config

	mu     sync.Mutex
	hints  store.Hints         // nil while this process is alone
	models map[string]Model    // by key
	all    map[string]*circuit // by key
	news   map[string]bool     // the keys of those to tell others about

	// asked receives when a request wants to know, told when there is news.
	asked, told chan struct{}
	// within is when sharing may go on: from Start to Close. It is nil before.
	within  context.Context
	stop    context.CancelFunc
	sharing sync.WaitGroup
}

// New returns the circuits, all closed.
func New(cfg Config) *Circuits {
	c := &Circuits{
		cfg:    cfg,
		models: map[string]Model{},
		all:    map[string]*circuit{},
		news:   map[string]bool{},
		asked:  make(chan struct{}, 1),
		told:   make(chan struct{}, 1),
		stop:   func() {},
	}
	c.Add(cfg.Models, cfg.Hints)
	return c
}

// Add adds the circuits of more models, and from then on shares what they find out if hints is
// not nil. Those that there are stay as they are: somebody may still be asking their models.
func (c *Circuits) Add(models []Model, hints store.Hints) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range models {
		if c.all[m.Key] == nil {
			c.all[m.Key], c.models[m.Key] = &circuit{}, m
		}
	}
	if hints != nil && c.hints == nil {
		c.hints = hints
		c.startSharing()
	}
}

// Open reports whether the model with the key should not be asked now, and until when. It
// changes nothing.
func (c *Circuits) Open(key string) (until time.Time, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[key]
	if one == nil {
		return time.Time{}, false
	}
	signal(c.asked)
	return one.open(c.cfg.Now())
}

// Begin is Open for a request that is sent now if the circuit is not open. If the circuit
// waits for a request that tries the model, this is the one: others are kept away until it
// is reported.
func (c *Circuits) Begin(key string) (until time.Time, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[key]
	if one == nil {
		return time.Time{}, false
	}
	signal(c.asked)
	now := c.cfg.Now()
	if until, open = one.open(now); !open {
		one.begin(now)
	}
	return until, open
}

// Report says how a request ended: with a complete answer if kind is empty, else with a
// failure of that kind, and how long the provider asked to wait. A request whose failure
// has no kind, or that was cancelled, is not reported.
func (c *Circuits) Report(key string, kind failure.Kind, retryAfter time.Duration) {
	now := c.cfg.Now()
	c.mu.Lock()
	one := c.all[key]
	if one == nil {
		c.mu.Unlock()
		return
	}
	is := same
	if kind == "" {
		is = one.succeeded(now)
	} else {
		is = one.failed(now, kind, retryAfter)
	}
	if is == opened || is == reopened {
		c.news[key] = true
		signal(c.told)
	}
	until := one.until
	c.mu.Unlock()
	if is != same {
		c.log(key, is, kind, until)
	}
}

// log says what has become of a circuit. Only the first time that a model fails is a
// warning.
func (c *Circuits) log(key string, is state, kind failure.Kind, until time.Time) {
	c.mu.Lock()
	m := c.models[key]
	c.mu.Unlock()
	log := c.cfg.Log.With("provider", m.Provider, "model", m.Model)
	switch is {
	case opened:
		log.Warn("a model is not asked for a while", "kind", kind, "until", until)
	case reopened:
		log.Info("a model still fails, and is not asked for a while", "kind", kind, "until", until)
	case told:
		log.Info("another server says that a model fails; it is not asked for a while", "kind", kind, "until", until)
	case closed:
		log.Info("a model answers again")
	}
}

// CountOpen returns how many circuits of a model are open now.
func (c *Circuits) CountOpen(provider, model string) int {
	now, n := c.cfg.Now(), 0
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, one := range c.all {
		if _, open := one.open(now); open && c.models[key].Provider == provider && c.models[key].Model == model {
			n++
		}
	}
	return n
}

// signal sends without waiting: one signal stands for all before it is received.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
