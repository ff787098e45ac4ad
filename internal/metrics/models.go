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
	// open counts the circuits of a model that are open now; it is nil until the server says.
	open *atomic.Pointer[func(provider, model string) int]
	// waiting counts the calls that wait for their turn now; it is nil until the server says.
	waiting *atomic.Pointer[func() int]
}

func newModelMetrics(f promauto.Factory) modelMetrics {
	m := modelMetrics{
		failures: f.NewCounterVec(counter("holdfast_model_failures_total",
			"Attempts of model calls that failed, by whose model it is and the kind of the failure."),
			[]string{"provider", "model", "kind"}),
		fallbacks: f.NewCounterVec(counter("holdfast_model_fallbacks_total",
			"Runs that left a model for another one of their agent."), []string{"agent", "from", "to"}),
		open:    &atomic.Pointer[func(provider, model string) int]{},
		waiting: &atomic.Pointer[func() int]{},
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "holdfast_model_calls_waiting",
		Help: "Model calls of runs that were taken over, which wait for their turn now."}, func() float64 {
		if count := m.waiting.Load(); count != nil {
			return float64((*count)())
		}
		return 0
	})
	return m
}

// zero creates the series of an agent's models: one for each kind of failure, and one for
// each pair of models.
func (m *modelMetrics) zero(agent string, chain fallback.Chain) {
	for i := range chain {
		for _, kind := range append(failure.Kinds(), other) {
			m.failures.WithLabelValues(label(chain[i].Provider), label(chain[i].ID), string(kind))
		}
		for k := range chain {
			if k != i {
				m.fallbacks.WithLabelValues(label(agent), label(chain[i].Name), label(chain[k].Name))
			}
		}
	}
}

// circuitCollector shows the open circuits of each configured model. Models may come while
// the server runs, so they are no gauges of their own: a registry knows those that it shows
// from the beginning.
type circuitCollector struct{ *Metrics }

// circuitsOpen describes its gauge; it is read only.
var circuitsOpen = prometheus.NewDesc("holdfast_model_circuit_open",
	"Open circuits of a model, which is not asked while there is another one; one for each place and key.",
	[]string{"provider", "model"}, nil)

// Describe implements [prometheus.Collector].
func (c circuitCollector) Describe(ch chan<- *prometheus.Desc) { ch <- circuitsOpen }

// Collect implements [prometheus.Collector].
func (c circuitCollector) Collect(ch chan<- prometheus.Metric) {
	open := c.models.open.Load()
	for _, m := range c.configured.Load().circuits {
		n := 0
		if open != nil {
			n = (*open)(m.provider, m.model)
		}
		ch <- prometheus.MustNewConstMetric(circuitsOpen, prometheus.GaugeValue, float64(n), m.provider, m.model)
	}
}

// CircuitsOpen says how to count the open circuits of a model at each scrape.
func (m *Metrics) CircuitsOpen(open func(provider, model string) int) { m.models.open.Store(&open) }

// CallsWaiting says how to count the model calls that wait for their turn at each scrape.
func (m *Metrics) CallsWaiting(count func() int) { m.models.waiting.Store(&count) }

// modelFailed counts the failed attempt. An extension's own kind is other, and so is a failure
// without one.
func (m *Metrics) modelFailed(_ holdfast.Iteration, f observe.ModelFailure) {
	provider, model := label(f.Provider), label(f.Model)
	if !m.configured.Load().models[f.Provider+"/"+f.Model] {
		provider, model = other, other
	}
	m.models.failures.WithLabelValues(provider, model, oneOf(failure.Kinds(), f.Kind)).Inc()
}

// fellBack counts the fallback.
func (m *Metrics) fellBack(at holdfast.Iteration, from, to string) {
	name := func(model string) string {
		if slices.Contains(m.configured.Load().chains[at.Agent], model) {
			return label(model)
		}
		return other
	}
	m.models.fallbacks.WithLabelValues(m.agent(at.Agent), name(from), name(to)).Inc()
}
