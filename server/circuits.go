package server

import (
	"strings"

	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/fallback"
)

// newCircuits returns the circuits of all models. Servers tell each other what they find out
// only if there is an agent that has another model to ask.
func (s *Server) newCircuits() *circuit.Circuits {
	cfg := circuit.Config{Log: s.cfg.Log, Now: s.cfg.Now}
	for i := range s.cfg.Agents {
		chain := fallback.ChainOf(&s.cfg.Agents[i])
		if len(chain) > 1 {
			cfg.Hints = s.store
		}
		for _, m := range chain {
			cfg.Models = append(cfg.Models, circuit.Model{Key: m.Circuit, Provider: m.Provider, Model: m.ID})
		}
	}
	return circuit.New(cfg)
}

// chainsText names the models of each agent that has more than one, in the order in which
// they are asked.
func (c *Config) chainsText() string {
	var b strings.Builder
	for i := range c.Agents {
		chain := fallback.ChainOf(&c.Agents[i])
		if len(chain) < 2 {
			continue
		}
		names := make([]string, len(chain))
		for n, m := range chain {
			names[n] = m.Name
		}
		b.WriteString("  models      " + c.Agents[i].Name + ": " + strings.Join(names, ", then ") + "\n")
	}
	return b.String()
}
