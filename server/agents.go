package server

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/middleware"
)

// maxParallelTools is how many calls of one answer may run at the same time.
const maxParallelTools = 16

// agentList is what clients may know about the configured agents.
type agentList struct {
	agents []agentcard.Info
	// ready are the same agents as the engine has them.
	ready *agents.Set
}

// all returns the agents, the default one first.
func (l agentList) all() []agentcard.Info {
	list := slices.Clone(l.agents)
	for i := range list {
		list[i].Tools, list[i].Revision = l.ready.Tools(list[i].Name), l.ready.Revision(list[i].Name)
	}
	return list
}

// servedAgents is what the server serves at one time. It does not change.
type servedAgents struct {
	Config // with the agents, limits and quotas of this time
	list   agentList
}

func (c *Config) agentList(ready *agents.Set) agentList {
	list := make([]agentcard.Info, len(c.Agents))
	for i, a := range c.Agents {
		list[i] = agentcard.Info{
			Name:          a.Name,
			Description:   a.Description,
			ParallelTools: maxParallelTools,
			MaxIterations: c.limits(a.Name).MaxIterations,
			Persistent:    c.OpenStore != nil || !strings.HasPrefix(c.Store, "memory"),
			Middleware:    make([]string, len(a.Middleware)),
			Formed:        a.Output != nil,
			Scripted:      isScripted(a),
			Approvals:     a.Approvals,
			ToolTimeout:   c.limits(a.Name).ToolTimeout,
		}
		for _, m := range fallback.ChainOf(&a) {
			list[i].Models = append(list[i].Models, m.Name)
		}
		list[i].Takes, list[i].Makes = mediaOf(a)
		if boundsItself(a) {
			list[i].MaxIterations = 0 // the middleware's bound is not known here
		}
		for n, m := range a.Middleware {
			list[i].Middleware[n] = m.Name
		}
	}
	return agentList{list, ready}
}

// isScripted reports whether an agent has no model but the one for trying out.
func isScripted(a holdfast.Agent) bool {
	return !slices.ContainsFunc(append([]holdfast.Model{a.Model}, a.Fallbacks...), func(m holdfast.Model) bool {
		_, is := m.(*scripted.Model)
		return !is
	})
}

// mediaOf returns what all of an agent's models say alike of the media that they take and
// make: a run may be with any of them.
func mediaOf(a holdfast.Agent) (takes, makes map[holdfast.PartType]bool) {
	for i, model := range append([]holdfast.Model{a.Model}, a.Fallbacks...) {
		var in, out map[holdfast.PartType]bool
		if m, says := model.(mediaModel); says {
			in, out = m.Media()
		}
		if i == 0 {
			takes, makes = maps.Clone(in), maps.Clone(out)
			continue
		}
		differs := func(other map[holdfast.PartType]bool) func(holdfast.PartType, bool) bool {
			return func(t holdfast.PartType, yes bool) bool {
				said, declared := other[t]
				return !declared || said != yes
			}
		}
		maps.DeleteFunc(takes, differs(in))
		maps.DeleteFunc(makes, differs(out))
	}
	return takes, makes
}

// engineAgents returns the agents as the engine runs them, and what it is told of them by
// name. tools counts the tools that outlive their timeout.
func (c *Config) engineAgents(tools *sync.WaitGroup) (all []holdfast.Agent, modelTries, maxMedia map[string]int) {
	all = make([]holdfast.Agent, len(c.Agents))
	modelTries, maxMedia = make(map[string]int, len(c.Agents)), make(map[string]int, len(c.Agents))
	for i, a := range c.Agents {
		l := c.limits(a.Name)
		a.Client = c.clientPolicy(&a)
		a.Revision = agents.Revision(&a, agents.Limits(l))
		a = withLimits(a, l, tools)
		a.Policy.Chat = a.Policy.Chat || c.Chat
		all[i] = a
		modelTries[a.Name], maxMedia[a.Name] = l.ModelTries, l.MaxMedia
	}
	return all, modelTries, maxMedia
}

// withLimits returns the agent with the server's limits around its middleware.
func withLimits(a holdfast.Agent, l Limits, tools *sync.WaitGroup) holdfast.Agent {
	// Timeouts and the limits of answers and results are about the model and the tool themselves. They
	// come last, so that a hook that waits does not count as a silent model, and each
	// attempt of a call has its full time.
	var all []holdfast.Middleware
	if !boundsItself(a) {
		all = append(all, middleware.IterationLimit(l.MaxIterations))
	}
	all = append(all, withBuiltIns(a)...)
	a, own := heldToTimes(a, l.ModelTimeout, l.ModelIdleTimeout)
	if !own {
		all = append(all, middleware.ModelTimeout(l.ModelTimeout, l.ModelIdleTimeout))
	}
	a.Middleware = append(all, middleware.ModelLimit(l.MaxAnswer, l.MaxCalls, l.MaxArguments),
		middleware.ToolTimeout(l.ToolTimeout, tools), middleware.ToolResultLimit(l.MaxToolResult))
	return a
}

// boundsItself reports whether a middleware decides how many iterations an agent may run,
// by asking a person for example. The server's own limit would end runs that it allows.
func boundsItself(a holdfast.Agent) bool {
	return slices.ContainsFunc(a.Middleware, func(m holdfast.Middleware) bool { return m.BoundsIterations })
}
