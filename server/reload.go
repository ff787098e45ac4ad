package server

import (
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
	"github.com/holdfast-agents/holdfast/middleware/budget"
)

// Other agents while the server runs: what a Reload replaces is in one place, servedAgents, so
// that every reader sees all of one configuration. The engine has its own, from which runs get
// their agents.

// agentsNow lists the agents of the moment.
type agentsNow struct{ s *Server }

// Agents implements [hfhttp.Agents].
func (n agentsNow) Agents() []agentcard.Info { return n.s.served.Load().list.all() }

// serveAgents shows the agents of a configuration from now on.
func (s *Server) serveAgents(cfg Config, agents *agents.Set) {
	s.served.Store(&servedAgents{Config: cfg, list: cfg.agentList(agents)})
	s.metrics.Loaded(s.now().Time())
}

// Reload replaces the agents and their limits, and the limits of tenants and users, as
// [Config] has them. Runs that begin from then on have the new ones: new runs, answers to open
// questions, runs that are taken over. Runs that are under way end as they began, with their
// model, tools, middleware and limits. A thread of an agent that is not there any more keeps
// what it has, and goes on when there is an agent of that name again.
//
// All of it is checked first, as [New] does. After an error everything is as it was.
//
// unused is closed as soon as no run of this process needs the agents that there were before;
// then what belongs to them can be closed. A Shutdown ends all runs.
func (s *Server) Reload(
	agents []holdfast.Agent, limits map[string]Limits, quotas Quotas,
) (unused <-chan struct{}, err error) {
	s.reloads.Lock()
	defer s.reloads.Unlock()
	defer func() { s.metrics.Reloaded(err == nil) }()
	next := s.cfg
	next.Agents, next.Limits, next.Quotas = slices.Clone(agents), maps.Clone(limits), quotas
	if err := next.validateAgents(); err != nil {
		return nil, err
	}
	ready, err := s.engine.NewAgents(next.engineAgents(&s.tools))
	if err != nil {
		return nil, err
	}
	// Nothing can fail from here on. The needs of runs are there before the first run has
	// them.
	s.metrics.Add(next.Agents)
	s.circuits.Add(modelsOf(next.Agents, s.store))
	s.limits.Set(next.Quotas.limits())
	s.serveAgents(next, ready)
	s.logRevisions(s.engine.Agents(), ready)
	return s.engine.Use(ready), nil
}

// logRevisions says in the log which agents have another revision than before.
func (s *Server) logRevisions(before, now *agents.Set) {
	for _, a := range s.served.Load().Agents {
		if from, to := before.Revision(a.Name), now.Revision(a.Name); from != to {
			s.cfg.Log.Info("an agent has another revision", "agent", a.Name, "from", from, "to", to)
		}
	}
}

// ReloadFailed counts a reload that failed before [Server.Reload] was called: the agents could
// not be read.
func (s *Server) ReloadFailed() { s.metrics.Reloaded(false) }

// SetPrices replaces [Config].Prices, as [Server.Reload] replaces the agents. It does not
// change the prices of budgets, which belong to agents.
func (s *Server) SetPrices(prices map[string]budget.Price) {
	list := maps.Clone(prices)
	s.prices.now.Store(&list)
}
