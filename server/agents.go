package server

import (
	"strings"

	"github.com/holdfast-agents/holdfast"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
)

// maxParallelTools is how many calls of one answer may run at the same time.
const maxParallelTools = 16

// agentList is what clients may know about the configured agents.
type agentList []hfhttp.AgentInfo

// Agents returns the agents, the default one first.
func (l agentList) Agents() []hfhttp.AgentInfo { return l }

func (c *Config) agentList() agentList {
	list := make(agentList, len(c.Agents))
	for i, a := range c.Agents {
		list[i] = hfhttp.AgentInfo{
			Name: a.Name, Description: a.Description, ParallelTools: maxParallelTools, MaxIterations: c.limits(a.Name).MaxIterations,
			Persistent: c.OpenStore != nil || !strings.HasPrefix(c.Store, "memory"),
			Tools:      make([]holdfast.ToolSpec, len(a.Tools)),
			Middleware: make([]string, len(a.Middleware)),
			Formed:     a.Output != nil,
		}
		if m, says := a.Model.(holdfast.MediaModel); says {
			list[i].Takes, list[i].Makes = m.Media()
		}
		if boundsItself(a) {
			list[i].MaxIterations = 0 // the middleware's bound is not known here
		}
		for n, m := range a.Middleware {
			list[i].Middleware[n] = m.Name
		}
		for n, t := range a.Tools {
			list[i].Tools[n] = t.Spec()
		}
	}
	return list
}
