package server

import (
	"maps"
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

// all returns the agents, the default one first.
func (l agentList) all() []hfhttp.AgentInfo {
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
			Formed:     a.Output != nil,
		}
		list[i].Takes, list[i].Makes = mediaOf(a)
		if boundsItself(a) {
			list[i].MaxIterations = 0 // the middleware's bound is not known here
		}
		for n, m := range a.Middleware {
			list[i].Middleware[n] = m.Name
		}
	}
	return agentList{list, tools}
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
			return func(t holdfast.PartType, yes bool) bool { said, declared := other[t]; return !declared || said != yes }
		}
		maps.DeleteFunc(takes, differs(in))
		maps.DeleteFunc(makes, differs(out))
	}
	return takes, makes
}
