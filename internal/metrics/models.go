package metrics

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/fallback"
	"github.com/holdfast-agents/holdfast/observe"
)

// modelMetrics count what models do wrong.
type modelMetrics struct {
	failures  *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	// circuits makes the gauge of a model's circuits, and open counts those that are open
	// now; it is nil until the server says.
	circuits promauto.Factory
	open     *atomic.Pointer[func(provider, model string) int]
	shown    map[[2]string]bool // the labels that have a gauge
	// known has "provider/model" of all that are configured, and names what agents call
	// them, by agent.
	known map[string]bool
	names map[string][]string
}

func newModelMetrics(f promauto.Factory) modelMetrics {
	return modelMetrics{
		failures: f.NewCounterVec(counter("holdfast_model_failures_total",
			"Attempts of model calls that failed, by whose model it is and the kind of the failure."), []string{"provider", "model", "kind"}),
		fallbacks: f.NewCounterVec(counter("holdfast_model_fallbacks_total",
			"Runs that left a model for another one of their agent."), []string{"agent", "from", "to"}),
		circuits: f, open: &atomic.Pointer[func(provider, model string) int]{}, shown: map[[2]string]bool{},
		known: map[string]bool{}, names: map[string][]string{},
	}
}

// add creates the series of an agent's models: one for each kind of failure, and one for
// each pair of models.
func (m *modelMetrics) add(a *holdfast.Agent) {
	chain := fallback.ChainOf(a)
	for i := range chain {
		m.known[chain[i].Provider+"/"+chain[i].ID] = true
		m.names[a.Name] = append(m.names[a.Name], chain[i].Name)
		m.showCircuits(chain[i].Provider, chain[i].ID)
		for _, kind := range append(failure.Kinds(), other) {
			m.failures.WithLabelValues(label(chain[i].Provider), label(chain[i].ID), string(kind))
		}
		for k := range chain {
			if k != i {
				m.fallbacks.WithLabelValues(label(a.Name), label(chain[i].Name), label(chain[k].Name))
			}
		}
	}
}

// showCircuits adds the gauge of a model, unless it is there.
func (m *modelMetrics) showCircuits(provider, model string) {
	labels := [2]string{label(provider), label(model)}
	if m.shown[labels] {
		return
	}
	m.shown[labels] = true
	m.circuits.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "holdfast_model_circuit_open", Help: "Open circuits of a model, which is not asked while there is another one; one for each place and key.",
		ConstLabels: prometheus.Labels{"provider": labels[0], "model": labels[1]},
	}, func() float64 {
		if open := m.open.Load(); open != nil {
			return float64((*open)(provider, model))
		}
		return 0
	})
}

// CircuitsOpen says how to count the open circuits of a model at each scrape.
func (m *Metrics) CircuitsOpen(open func(provider, model string) int) { m.models.open.Store(&open) }

// modelFailed counts the failed attempt. What an extension calls a kind is other, and so is
// a failure without one.
func (m *Metrics) modelFailed(_ holdfast.Iteration, f observe.ModelFailure) {
	provider, model := label(f.Provider), label(f.Model)
	if !m.models.known[f.Provider+"/"+f.Model] {
		provider, model = other, other
	}
	m.models.failures.WithLabelValues(provider, model, oneOf(failure.Kinds(), f.Kind)).Inc()
}

// fellBack counts the fallback.
func (m *Metrics) fellBack(at holdfast.Iteration, from, to string) {
	name := func(model string) string {
		if slices.Contains(m.models.names[at.Agent], model) {
			return label(model)
		}
		return other
	}
	m.models.fallbacks.WithLabelValues(m.agent(at.Agent), name(from), name(to)).Inc()
}
