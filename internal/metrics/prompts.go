package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
)

// promptMetrics count what models are sent, and how much of it they were sent before.
type promptMetrics struct {
	sent     *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	repeated *prometheus.CounterVec
}

func newPromptMetrics(f promauto.Factory) promptMetrics {
	m := promptMetrics{
		sent: f.NewCounterVec(counter("holdfast_prompts_total",
			"Requests to models, by why they do not begin with all of the thread's request before; none: they do."),
			[]string{"provider", "model", "cut"}),
		bytes: f.NewCounterVec(counter("holdfast_prompt_bytes_total",
			"Bytes of requests to models, without what may be different in the next request."),
			[]string{"provider", "model"}),
		repeated: f.NewCounterVec(counter("holdfast_prompt_repeated_bytes_total",
			"Bytes at the beginning of these requests that were in the thread's request before, so that a provider "+
				"can have them in its cache."), []string{"provider", "model"}),
	}
	m.zero(other, other)
	return m
}

func (m *promptMetrics) zero(provider, model string) {
	for _, cut := range observe.PromptCuts() {
		m.sent.WithLabelValues(provider, model, string(cut))
	}
	m.bytes.WithLabelValues(provider, model)
	m.repeated.WithLabelValues(provider, model)
}

// promptSent counts a request and what it repeats.
func (m *Metrics) promptSent(_ holdfast.Iteration, p observe.Prompt) {
	provider, model := label(p.Provider), label(p.Model)
	if !m.configured.Load().models[p.Provider+"/"+p.Model] {
		provider, model = other, other
	}
	m.prompts.sent.WithLabelValues(provider, model, oneOf(observe.PromptCuts(), p.Cut)).Inc()
	m.prompts.bytes.WithLabelValues(provider, model).Add(float64(p.Bytes))
	m.prompts.repeated.WithLabelValues(provider, model).Add(float64(p.Repeated))
}
