package server

import (
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/circuit"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/store"
)

// newCircuits returns the circuits of all models.
func newCircuits(cfg *Config, shared store.Hints) *circuit.Circuits {
	c := circuit.New(circuit.Config{Log: cfg.Log, Now: time.Now})
	c.Add(modelsOf(cfg.Agents, shared))
	return c
}

// modelsOf returns the models of agents, and where servers tell each other of them: nowhere
// unless there is an agent that has another model to ask.
func modelsOf(agents []holdfast.Agent, shared store.Hints) (models []circuit.Model, hints store.Hints) {
	for i := range agents {
		chain := fallback.ChainOf(&agents[i])
		if len(chain) > 1 {
			hints = shared
		}
		for _, m := range chain {
			models = append(models, circuit.Model{Key: m.Circuit, Provider: m.Provider, Model: m.ID})
		}
	}
	return models, hints
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
