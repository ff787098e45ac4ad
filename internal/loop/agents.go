package loop

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The agents that can be run, and what is made of each before anything runs: its tools, its
// models, its hooks, the schema of its states and the form of its answers. They can be
// replaced while the engine runs, all at once. A run has its agent from its beginning or its
// takeover in this process to its end, whatever is replaced meanwhile; who asks for an agent
// later gets one of the new ones.

// Agents are the agents of an engine at one time. They do not change.
type Agents struct {
	list   []*agent // the first is the default
	byName map[string]*agent
	// users counts who needs them: runs, what may begin one, and the engine while they are
	// its own. At 0 it stays there, and unused is closed.
	users  atomic.Int64
	unused chan struct{}
}

// agent is an agent, and what its runs need.
type agent struct {
	*holdfast.Agent
	of     *Agents
	tools  *toolboxes
	models fallback.Chain
	chain  *hooks.Chain
	schema *thread.Schema
	form   *form // of its answers; nil if any will do
	// tries is how often one of its models is tried for an answer, at most.
	tries int
	// maxMedia bounds the media of an answer, in bytes of base64; 0 means no bound.
	maxMedia int
}

// NewAgents makes agents ready to be run, and changes nothing. tries and media are what
// ModelTriesOf and MaxMediaOf are in [Config]. The error is that of an agent whose middleware
// registers two states of one name, or whose Output cannot be used.
func (h *host) NewAgents(agents []holdfast.Agent, tries, media map[string]int) (*Agents, error) {
	a := &Agents{byName: make(map[string]*agent, len(agents)), unused: make(chan struct{})}
	a.users.Store(1)
	for _, configured := range agents {
		one, err := h.newAgent(configured)
		if err != nil {
			return nil, err
		}
		one.of = a
		if n, own := tries[one.Name]; own {
			one.tries = n
		}
		if n, own := media[one.Name]; own {
			one.maxMedia = n
		}
		a.list, a.byName[one.Name] = append(a.list, one), one
	}
	return a, nil
}

func (h *host) newAgent(a holdfast.Agent) (*agent, error) {
	a.Tools = slices.Clip(a.Tools)
	for _, m := range a.Middleware {
		a.Tools = append(a.Tools, m.Tools...)
	}
	one := &agent{Agent: &a, tries: h.cfg.ModelTries, maxMedia: h.cfg.MaxMedia}
	one.tools = &toolboxes{agent: &a, log: h.cfg.Log}
	one.models = fallback.ChainOf(&a)
	one.chain = hooks.New(&a, h.cfg.Log, h.cfg.Observer.HookFailed)
	var err error
	if one.schema, err = thread.NewSchema(&a); err != nil {
		return nil, fmt.Errorf("agent %q: %w", a.Name, err)
	}
	one.form, err = newForm(&a)
	return one, err
}

// Use replaces the engine's agents for whatever begins from now on. unused is closed as soon
// as no run of this process needs those that the engine had before.
func (h *host) Use(a *Agents) (unused <-chan struct{}) {
	before := h.agents.Swap(a)
	before.drop()
	select {
	case h.replaced <- struct{}{}:
	default: // they are told of the newest ones anyway
	}
	h.used()
	return before.unused
}

// Agents returns the agents that new runs get.
func (h *host) Agents() *Agents { return h.agents.Load() }

// use returns the agents as they are now, for something that may begin a run. The caller
// calls drop when it has.
func (h *host) use() *Agents {
	for {
		if a := h.agents.Load(); a.hold() {
			return a
		}
	}
}

// hold adds a user, unless there is none any more.
func (a *Agents) hold() bool {
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

// drop ends what use or hold began. a may be nil.
func (a *Agents) drop() {
	if a != nil && a.users.Add(-1) == 0 {
		close(a.unused)
	}
}

// named returns the named agent, the default one for "". The error is agent_not_found.
func (a *Agents) named(name string) (*agent, error) {
	if name == "" {
		return a.list[0], nil
	}
	one, ok := a.byName[name]
	if !ok {
		return nil, errAgentNotFound(name)
	}
	return one, nil
}

// Revision returns the revision of an agent; empty for one that there is not.
func (a *Agents) Revision(name string) string {
	if one, known := a.byName[name]; known {
		return one.Agent.Revision
	}
	return ""
}

// ofThread returns the agent that has unfinished work on a thread. The error is
// agent_not_found.
func (a *Agents) ofThread(t *thread.Thread) (*agent, error) {
	one, ok := a.byName[t.State.Agent]
	if !ok {
		return nil, errAgentGone(t.State.Agent)
	}
	return one, nil
}

// Tools returns the specifications of an agent's tools as its toolsets list them now, by
// name; none for an agent that there is not.
func (a *Agents) Tools(name string) []holdfast.ToolSpec {
	if one, known := a.byName[name]; known {
		return one.tools.now().specs
	}
	return nil
}

// Tools returns the specifications of the tools that an agent has now, by name; none for an
// agent that there is not.
func (h *host) Tools(agent string) []holdfast.ToolSpec { return h.agents.Load().Tools(agent) }
