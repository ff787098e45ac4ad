package declared

import (
	"context"
	"log/slog"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/mcp"
)

// The tools of MCP servers that an agent lists: those of the server's list that its patterns
// name. They are chosen once for each list of the server.

// serverTools are an agent's tools of one MCP server.
type serverTools struct {
	server   *mcp.Server
	patterns []string
	agent    string
	log      *slog.Logger

	newest atomic.Pointer[choice]
	mu     sync.Mutex // one chooses at a time
}

// choice is what was chosen from a list.
type choice struct {
	from, tools []holdfast.Tool
}

// is reports whether the choice was made from this very list.
func (c *choice) is(from []holdfast.Tool) bool {
	return c != nil && len(c.from) == len(from) && (len(from) == 0 || &c.from[0] == &from[0])
}

// Toolsets returns an agent's tools of MCP servers.
func Toolsets(a config.Agent, servers []*mcp.Server, log *slog.Logger) (sets []holdfast.Toolset) {
	for _, listed := range a.ServerTools {
		for _, s := range servers {
			if s.Name() == listed.Server {
				sets = append(sets, &serverTools{server: s, patterns: listed.Patterns, agent: a.Name, log: log})
			}
		}
	}
	return sets
}

// Name and Revision are those of the server, for its metric.
func (t *serverTools) Name() string     { return t.server.Name() }
func (t *serverTools) Revision() string { return t.server.Revision() }

// Tools implements [holdfast.Toolset].
func (t *serverTools) Tools() []holdfast.Tool {
	from := t.server.Tools()
	if c := t.newest.Load(); c.is(from) {
		return c.tools
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	from = t.server.Tools()
	if c := t.newest.Load(); c.is(from) {
		return c.tools
	}
	c := t.choose(from)
	t.newest.Store(c)
	return c.tools
}

// AwaitTool lets the engine wait for a tool of an open call after a restart, if the agent
// lists it.
func (t *serverTools) AwaitTool(ctx context.Context, name string) error {
	for _, p := range t.patterns {
		if ok, _ := path.Match(p, name); ok {
			return t.server.AwaitTool(ctx, name)
		}
	}
	return nil
}

// choose picks tools from a list, and warns of patterns that name none of them.
func (t *serverTools) choose(from []holdfast.Tool) *choice {
	used := make([]bool, len(t.patterns))
	chosen := make([]holdfast.Tool, 0, len(from))
	for _, tool := range from {
		name := tool.Spec().Name
		picked := false
		for i, p := range t.patterns {
			if ok, _ := path.Match(p, name); ok {
				used[i], picked = true, true
			}
		}
		if picked {
			chosen = append(chosen, tool)
		}
	}
	for i, p := range t.patterns {
		if !used[i] && len(from) > 0 { // before its first list a server has no tools
			t.log.Warn("an agent lists a tool that the MCP server does not have",
				"agent", t.agent, "mcp", t.server.Name(), "tool", p)
		}
	}
	return &choice{from: from, tools: slices.Clip(chosen)}
}
