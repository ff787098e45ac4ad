package server

import (
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/loop"
)

// Other agents while the server runs: what a Reload replaces is in one place, servedAgents, so
// that whoever looks sees all of one configuration. The engine has its own, from which runs
// get their agents.

// servedAgents is what the server serves at one time. It does not change.
type servedAgents struct {
	Config // with the agents, limits and quotas of this time
	list   agentList
}

// agentsNow lists the agents of the moment.
type agentsNow struct{ s *Server }

// Agents implements [hfhttp.Agents].
func (n agentsNow) Agents() []hfhttp.AgentInfo { return n.s.served.Load().list.all() }

// serveAgents shows the agents of a configuration from now on.
func (s *Server) serveAgents(cfg Config, agents *loop.Agents) {
	s.served.Store(&servedAgents{Config: cfg, list: cfg.agentList(agents.Tools)})
	s.metrics.Loaded(cfg.Now())
}

// Reload replaces the agents and their limits, and the limits of tenants and users, as
// [Config] has them. Whatever begins from then on has the new ones: new runs, answers to open
// questions, runs that are taken over. Runs that are under way end as they began, with their
// model, tools, middleware and limits. A thread of an agent that is not there any more keeps
// what it has, and goes on when there is an agent of that name again.
//
// All of it is checked first, as [New] does. After an error everything is as it was.
//
// unused is closed as soon as no run of this process needs the agents that there were before;
// then what belongs to them can be closed. A Shutdown ends all runs.
func (s *Server) Reload(agents []holdfast.Agent, limits map[string]Limits, quotas Quotas) (unused <-chan struct{}, err error) {
	s.reloads.Lock()
	defer s.reloads.Unlock()
	defer func() { s.metrics.Reloaded(err == nil) }()
	next := s.cfg
	next.Agents, next.Limits, next.Quotas = slices.Clone(agents), maps.Clone(limits), quotas
	if err := next.validateAgents(); err != nil {
		return nil, err
	}
	ready, err := s.engine.NewAgents(s.engineAgents(next))
	if err != nil {
		return nil, err
	}
	// Nothing can fail from here on. What runs need is there before the first run has them.
	s.metrics.Add(next.Agents)
	s.circuits.Add(s.modelsOf(next.Agents))
	s.limits.Set(next.Quotas.limits())
	s.serveAgents(next, ready)
	return s.engine.Use(ready), nil
}

// ReloadFailed counts a reload that failed before [Server.Reload] was called: the agents could
// not be read.
func (s *Server) ReloadFailed() { s.metrics.Reloaded(false) }

// Changes is what is different in one agents file and the next: names, and nothing of what
// the files say.
type Changes struct {
	// Added, Removed and Changed are agents. One has changed if its entry in the file has, or
	// its instructions.
	Added, Removed, Changed []string
	// Others are what else has changed: keys of the file, such as limits, prices and
	// mcpServers, and the paths of files that it names; and default, if another agent is the
	// first now.
	Others []string
}

// Changes returns what is different from what was loaded before.
func (l *Loaded) Changes(before *Loaded) Changes {
	c := Changes{}
	c.Added, c.Removed, c.Changed = compared(before.sums.Agents, l.sums.Agents)
	added, removed, changed := compared(before.sums.Others, l.sums.Others)
	c.Others = slices.Concat(added, removed, changed)
	if l.Agents[0].Name != before.Agents[0].Name {
		c.Others = append(c.Others, "default")
	}
	slices.Sort(c.Others)
	return c
}

// compared returns what is different in two maps of sums, sorted.
func compared(before, after map[string]string) (added, removed, changed []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch was, there := before[name]; {
		case !there:
			added = append(added, name)
		case was != after[name]:
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			removed = append(removed, name)
		}
	}
	return added, removed, changed
}
