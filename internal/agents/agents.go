// Package agents has the agents that can be run, and what is made of each before anything
// runs: its tools, its models, its hooks, the schema of its states and the form of its
// answers. They can be replaced while the engine runs, all at once. A run has its agent from
// its beginning or its takeover in this process to its end, whatever is replaced meanwhile;
// who asks for an agent later gets one of the new ones.
package agents

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Set are the agents of an engine at one time. They do not change.
type Set struct {
	List   []*Agent // the first is the default
	ByName map[string]*Agent
	// users counts who needs them: runs, what may begin one, and the engine while they are
	// its own. At 0 it stays there, and unused is closed.
	users  atomic.Int64
	unused chan struct{}
}

// Agent is an agent, and what its runs need.
type Agent struct {
	*holdfast.Agent
	Of        *Set // the set that it is one of
	Toolboxes *Toolboxes
	Models    fallback.Chain
	Hooks     *hooks.Chain
	Schema    *thread.Schema
	Form      *Form   // of its answers; nil if any will do
	Shared    *Shared // what it does with the shared state; nil if nothing
	// Tries is how often one of its models is tried for an answer, at most.
	Tries int
	// MaxMedia bounds the media of an answer, in bytes of base64; 0 means no bound.
	MaxMedia int
}

// Serving has the agents that new runs get.
type Serving struct {
	cfg Config
	now atomic.Pointer[Set]
	// replaced is called when others have taken their place.
	replaced func()
}

// Config is what all agents have in common.
type Config struct {
	ModelTries int // how often one model is tried for an answer, at most
	MaxMedia   int // bounds the media of an answer, in bytes of base64; 0 means no bound
	Log        *slog.Logger
	// HookFailed is told of each hook that has failed.
	HookFailed func(at holdfast.Iteration, middleware, hook string)
}

// New returns what has the agents that are handed to Begin. replaced is called when
// they are replaced.
func New(cfg Config, replaced func()) *Serving { return &Serving{cfg: cfg, replaced: replaced} }

// NewAgents makes agents ready to be run, and changes nothing. tries and media are what
// [Config] says for all agents, for single ones by name. The error is that of an agent whose middleware
// registers two states of one name, or whose Output cannot be used.
func (s *Serving) NewAgents(agents []holdfast.Agent, tries, media map[string]int) (*Set, error) {
	a := &Set{ByName: make(map[string]*Agent, len(agents)), unused: make(chan struct{})}
	a.users.Store(1)
	for _, configured := range agents {
		one, err := s.newAgent(configured)
		if err != nil {
			return nil, err
		}
		one.Of = a
		if n, own := tries[one.Name]; own {
			one.Tries = n
		}
		if n, own := media[one.Name]; own {
			one.MaxMedia = n
		}
		a.List, a.ByName[one.Name] = append(a.List, one), one
	}
	return a, nil
}

func (s *Serving) newAgent(a holdfast.Agent) (*Agent, error) {
	a.Tools = slices.Clip(a.Tools)
	for _, m := range a.Middleware {
		a.Tools = append(a.Tools, m.Tools...)
	}
	one := &Agent{Agent: &a, Tries: s.cfg.ModelTries, MaxMedia: s.cfg.MaxMedia}
	one.Toolboxes = &Toolboxes{agent: &a, log: s.cfg.Log}
	one.Models = fallback.ChainOf(&a)
	one.Hooks = hooks.New(&a, s.cfg.Log, s.cfg.HookFailed)
	var err error
	if one.Schema, err = thread.NewSchema(&a); err != nil {
		return nil, fmt.Errorf("agent %q: %w", a.Name, err)
	}
	if one.Form, err = newForm(&a); err != nil {
		return nil, err
	}
	one.Shared, err = newShared(&a)
	return one, err
}

// Use replaces the engine's agents for whatever begins from now on. unused is closed as soon
// as no run of this process needs those that the engine had before, of which there must be some.
func (s *Serving) Use(a *Set) (unused <-chan struct{}) {
	before := s.now.Swap(a)
	before.Drop()
	s.replaced()
	return before.unused
}

// Begin is Use for the first agents.
func (s *Serving) Begin(a *Set) { s.now.Store(a) }

// Agents returns the agents that new runs get.
func (s *Serving) Agents() *Set { return s.now.Load() }

// Take returns the agents as they are now, for something that may begin a run. The caller
// calls Drop when it has.
func (s *Serving) Take() *Set {
	for {
		if a := s.now.Load(); a.Hold() {
			return a
		}
	}
}

// Hold adds a user, unless there is none any more.
func (a *Set) Hold() bool {
	for {
		n := a.users.Load()
		if n == 0 {
			return false
		}
		if a.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Drop ends what Take or Hold began. a may be nil.
func (a *Set) Drop() {
	if a != nil && a.users.Add(-1) == 0 {
		close(a.unused)
	}
}

// Named returns the named agent, the default one for "". The error is agent_not_found.
func (a *Set) Named(name string) (*Agent, error) {
	if name == "" {
		return a.List[0], nil
	}
	one, ok := a.ByName[name]
	if !ok {
		return nil, NotFound(name)
	}
	return one, nil
}

// Revision returns the revision of an agent; empty for one that there is not.
func (a *Set) Revision(name string) string {
	if one, known := a.ByName[name]; known {
		return one.Agent.Revision
	}
	return ""
}

// OfThread returns the agent that has unfinished work on a thread. The error is
// agent_not_found.
func (a *Set) OfThread(t *thread.Thread) (*Agent, error) {
	one, ok := a.ByName[t.State.Agent]
	if !ok {
		return nil, Gone(t.State.Agent)
	}
	return one, nil
}

// Tools returns the specifications of an agent's tools as its toolsets list them now, by
// name; none for an agent that there is not.
func (a *Set) Tools(name string) []holdfast.ToolSpec {
	if one, known := a.ByName[name]; known {
		return one.Toolboxes.Now().Specs
	}
	return nil
}

// Tools returns the specifications of the tools that an agent has now, by name; none for an
// agent that there is not.
func (s *Serving) Tools(agent string) []holdfast.ToolSpec { return s.now.Load().Tools(agent) }

// NotFound is for a request that names an agent that there is not.
func NotFound(name string) *holdfast.Error {
	return holdfast.Errorf(codes.AgentNotFound, "There is no agent %q.", name).
		WithHint("Leave the name out (POST /runs) to use the default agent.")
}

// Gone is for a thread with unfinished work of an agent that there is not.
func Gone(name string) *holdfast.Error {
	return holdfast.Errorf(codes.AgentNotFound,
		"The agent %q, which has unfinished work on this thread, is not configured any more.", name).
		WithHint("Nothing is lost: once its operator has configured it again, %s. Until then the thread can be read.",
			thread.HintEmptyPost).
		With("agent", name)
}
