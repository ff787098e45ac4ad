package server

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/revision"
)

// agentDeclaration is what an agents file says of an agent that the agent itself does not show. It has
// nothing in it that may be a secret, or that differs from place to place: no headers, no URLs.
type agentDeclaration struct {
	Models     []modelDeclaration  `json:"models"`
	Middleware []json.RawMessage   `json:"middleware,omitempty"` // the options
	Servers    map[string][]string `json:"servers,omitempty"`    // the patterns of tools, by the name of the MCP server
}

type modelDeclaration struct {
	Params      map[string]any `json:"params,omitempty"`
	Timeout     time.Duration  `json:"timeout,omitempty"`
	IdleTimeout time.Duration  `json:"idleTimeout,omitempty"`
}

// declaredRevision returns what the file adds to an agent's revision.
func declaredRevision(a *config.Agent) string {
	d := agentDeclaration{Middleware: a.Options}
	for i := range a.Models {
		m := &a.Models[i]
		d.Models = append(d.Models, modelDeclaration{m.Params, m.Timeout, m.IdleTimeout})
	}
	for _, s := range a.ServerTools {
		if d.Servers == nil {
			d.Servers = map[string][]string{}
		}
		d.Servers[s.Server] = append(d.Servers[s.Server], s.Patterns...)
	}
	return revision.Sum(d)
}
