package server

import (
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
)

// maxParallelTools is how many calls of one answer may run at the same time.
const maxParallelTools = 16

// agentList is what clients may know about the configured agents.
type agentList struct {
	agents []hfhttp.AgentInfo
	// tools returns an agent's tools as they are now.
	tools func(agent string) []holdfast.ToolSpec
}

// Agents returns the agents, the default one first.
func (l agentList) Agents() []hfhttp.AgentInfo {
	list := slices.Clone(l.agents)
	for i := range list {
		list[i].Tools = l.tools(list[i].Name)
	}
	return list
}

func (c *Config) agentList(tools func(agent string) []holdfast.ToolSpec) agentList {
	list := make([]hfhttp.AgentInfo, len(c.Agents))
	for i, a := range c.Agents {
		list[i] = hfhttp.AgentInfo{
			Name: a.Name, Description: a.Description, ParallelTools: maxParallelTools, MaxIterations: c.limits(a.Name).MaxIterations,
			Persistent: c.OpenStore != nil || !strings.HasPrefix(c.Store, "memory"),
			Middleware: make([]string, len(a.Middleware)),
		}
		if boundsItself(a) {
			list[i].MaxIterations = 0 // the middleware's bound is not known here
		}
		for n, m := range a.Middleware {
			list[i].Middleware[n] = m.Name
		}
	}
	return agentList{list, tools}
}
