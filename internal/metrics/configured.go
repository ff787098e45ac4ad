package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/observe"
)

// The names that the configuration makes labels, and the reloads that bring more of them. A
// name stays when its agent is removed: its series have counted, and runs may still have it.

// configured are the configured names, with the label of each. They do not change: who adds
// some makes new ones.
type configured struct {
	agents, tools, middleware map[string]string
	// toolsets means that other tools may come while the server runs.
	toolsets bool
	// models has "provider/model" of all models, and chains what agents call them, by agent.
	models map[string]bool
	chains map[string][]string
	// circuits are the labels of the models that have a gauge.
	circuits []modelLabels
	// servers are those of the newest agents alone.
	servers []toolServer
}

type modelLabels struct{ provider, model string }

func (c *configured) clone() *configured {
	next := &configured{
		agents:     map[string]string{},
		tools:      map[string]string{},
		middleware: map[string]string{},
		toolsets:   c.toolsets,
		models:     map[string]bool{},
		chains:     map[string][]string{},
		circuits:   slices.Clone(c.circuits),
	}
	maps.Copy(next.agents, c.agents)
	maps.Copy(next.tools, c.tools)
	maps.Copy(next.middleware, c.middleware)
	maps.Copy(next.models, c.models)
	for agent, names := range c.chains {
		next.chains[agent] = slices.Clone(names)
	}
	return next
}

// add adds the names of an agent.
func (c *configured) add(a *holdfast.Agent, chain fallback.Chain) {
	c.agents[a.Name] = label(a.Name)
	own := slices.Clip(a.Tools)
	for _, mw := range a.Middleware {
		c.middleware[mw.Name] = label(mw.Name)
		own = append(own, mw.Tools...)
	}
	for _, t := range own {
		c.tools[t.Spec().Name] = label(t.Spec().Name)
	}
	c.toolsets = c.toolsets || len(a.Toolsets) > 0
	for _, m := range chain {
		c.models[m.Provider+"/"+m.ID] = true
		if !slices.Contains(c.chains[a.Name], m.Name) {
			c.chains[a.Name] = append(c.chains[a.Name], m.Name)
		}
		if l := (modelLabels{label(m.Provider), label(m.ID)}); !slices.Contains(c.circuits, l) {
			c.circuits = append(c.circuits, l)
		}
	}
}

// Add adds agents that are configured from now on, and creates their series, at 0.
func (m *Metrics) Add(agents []holdfast.Agent) {
	m.adding.Lock()
	defer m.adding.Unlock()
	next := m.configured.Load().clone()
	for i := range agents {
		a := &agents[i]
		chain := fallback.ChainOf(a)
		next.add(a, chain)
		m.models.zero(a.Name, chain)
		for _, model := range chain {
			m.prompts.zero(label(model.Provider), label(model.ID))
		}
		for k := range a.Middleware {
			m.zeroMiddleware(&a.Middleware[k])
		}
	}
	next.servers = toolServers(agents)
	m.zeroSteps(next)
	m.configured.Store(next)
}

// zeroSteps creates the series of agents and tools.
func (m *Metrics) zeroSteps(c *configured) {
	for _, agent := range c.agents {
		for _, outcome := range observe.Outcomes() {
			m.runs.total.WithLabelValues(agent, string(outcome))
		}
		for _, result := range observe.ModelResults() {
			m.steps.modelCalls.WithLabelValues(agent, string(result))
		}
		for _, kind := range []string{"input", "output", "cached", "cache_write", "reasoning"} {
			m.steps.tokens.WithLabelValues(agent, kind)
		}
	}
	for _, tool := range c.tools {
		m.steps.toolDuration.WithLabelValues(tool)
		for _, result := range observe.ToolResults() {
			if result != observe.ToolFrontend {
				m.steps.toolCalls.WithLabelValues(tool, string(result))
			}
		}
	}
}

// reloadMetrics count how often the agents were replaced.
type reloadMetrics struct {
	total  *prometheus.CounterVec
	loaded prometheus.Gauge
}

// reloadResults are the values of result in holdfast_reloads_total. They are read only.
var reloadResults = []string{"ok", "failed"}

func newReloadMetrics(f promauto.Factory) reloadMetrics {
	return reloadMetrics{
		total: f.NewCounterVec(counter("holdfast_reloads_total",
			"Attempts to replace the agents while the server runs, by result; failed: there was a mistake, "+
				"and all stayed as it was."), []string{"result"}),
		loaded: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_agents_loaded_timestamp_seconds",
			Help: "When the agents that new runs get were loaded: at the start, or by a reload."}),
	}
}

// Loaded notes that the agents are those of this time.
func (m *Metrics) Loaded(at time.Time) { m.reloads.loaded.Set(float64(at.UnixMilli()) / 1000) }

// Reloaded counts an attempt to replace the agents.
func (m *Metrics) Reloaded(ok bool) {
	result := "failed"
	if ok {
		result = "ok"
	}
	m.reloads.total.WithLabelValues(result).Inc()
}
