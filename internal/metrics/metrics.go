// Package metrics counts and times for Prometheus what the engine and the HTTP surface
// report. Every metric is described in docs/metrics.md.
//
// The configuration bounds the number of series: a label value is the name of a
// configured agent or tool, a route's pattern, or one of a closed set. Threads, runs
// and users are never labels; they are in the log.
package metrics

// All metrics with their names, help texts and buckets. The moments of counting are in
// observe.go.

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
)

// Metrics are the metrics of one server. They observe the engine and the HTTP surface;
// all methods may be called concurrently.
type Metrics struct {
	// registry has these metrics alone; served has those of the Go runtime and the process
	// too.
	registry, served *prometheus.Registry
	// configured are the names that become labels, and adding is held while there come more.
	configured atomic.Pointer[configured]
	adding     sync.Mutex
	// sets are the names of the tools of toolsets.
	sets *names

	runs      runMetrics
	steps     stepMetrics
	models    modelMetrics
	prompts   promptMetrics
	hooks     hookMetrics
	store     storeMetrics
	index     indexMetrics
	endpoints httpMetrics
	reloads   reloadMetrics
	formats   formatMetrics
}

type runMetrics struct {
	total     *prometheus.CounterVec
	errors    *prometheus.CounterVec
	duration  prometheus.Histogram
	running   prometheus.Gauge
	claims    *prometheus.CounterVec
	takeovers prometheus.Counter
}

type stepMetrics struct {
	iterations    prometheus.Counter
	modelCalls    *prometheus.CounterVec
	modelDuration prometheus.Histogram
	firstDelta    prometheus.Histogram
	tokens        *prometheus.CounterVec
	toolCalls     *prometheus.CounterVec
	toolDuration  *prometheus.HistogramVec
	outsideCalls  *prometheus.CounterVec
}

type hookMetrics struct {
	notices *prometheus.CounterVec
	failed  *prometheus.CounterVec
	schemas *prometheus.CounterVec
	names   *names
}

type storeMetrics struct {
	checkpoints   prometheus.Histogram
	commits       prometheus.Histogram
	errors        *prometheus.CounterVec
	records       prometheus.Counter
	saved         prometheus.Counter
	loaded        prometheus.Counter
	deleted       prometheus.Counter
	perCheckpoint prometheus.Histogram
	saveErrors    prometheus.Counter
	lease         *prometheus.CounterVec
	cleaned       *prometheus.CounterVec
	looked        prometheus.Counter
	unreadable    prometheus.Gauge
	large         prometheus.Counter
	durability    *prometheus.GaugeVec
}

// indexMetrics are those of the lists of the index.
type indexMetrics struct {
	lag     *prometheus.HistogramVec
	entries *prometheus.GaugeVec
	mended  *prometheus.CounterVec
}

type httpMetrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	streams     prometheus.Gauge
	connections prometheus.Gauge
	refused     prometheus.Counter
	limits      *prometheus.CounterVec
}

// New makes the metrics of a server with these agents, in a registry of their own.
// Every series that the configuration determines exists from the start, at 0, so that
// the first event is already an increase. See [Metrics.Add] for agents that come later.
func New(agents []holdfast.Agent) *Metrics {
	r, served := prometheus.NewRegistry(), prometheus.NewRegistry()
	f := promauto.With(r)
	m := &Metrics{
		registry:  r,
		served:    served,
		sets:      &names{seen: map[string]bool{}, most: maxToolNames},
		runs:      newRunMetrics(f),
		steps:     newStepMetrics(f),
		models:    newModelMetrics(f),
		prompts:   newPromptMetrics(f),
		hooks:     newHookMetrics(f),
		store:     newStoreMetrics(f),
		index:     newIndexMetrics(f),
		endpoints: newHTTPMetrics(f),
		reloads:   newReloadMetrics(f),
		formats:   newFormatMetrics(f),
	}
	r.MustRegister(circuitCollector{m}, serverCollector{m})
	m.configured.Store(&configured{})
	m.zero()
	m.Durability("")
	m.Add(agents)
	served.MustRegister(r, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler returns a handler that serves what others gather or, without them, the metrics
// of this server, of the Go runtime and of the process, in the format that the scraper asks
// for. It requires no key: anyone who can reach it can read the names of agents and tools,
// so keep it internal.
func (m *Metrics) Handler(others prometheus.Gatherer) http.Handler {
	if others == nil {
		others = m.served
	}
	return promhttp.HandlerFor(others, promhttp.HandlerOpts{})
}

// Durability notes what the store's commits survive; empty if that is not known.
func (m *Metrics) Durability(is store.Level) {
	for _, level := range []store.Level{store.LevelNone, store.LevelProcess, store.LevelMachine, store.LevelFailover} {
		value := 0.0
		if level == is {
			value = 1
		}
		m.store.durability.WithLabelValues(string(level)).Set(value)
	}
}

// Collector returns the metrics of this server as one collector, for the registry of a
// program.
func (m *Metrics) Collector() prometheus.Collector { return m.registry }

// Registry returns the registry that is served by default, to gather it or to add to it.
func (m *Metrics) Registry() *prometheus.Registry { return m.served }

func newRunMetrics(f promauto.Factory) runMetrics {
	return runMetrics{
		total: f.NewCounterVec(counter("holdfast_runs_total",
			"Runs that have ended in this process, by outcome; left: another process continues the run."),
			[]string{"agent", "outcome"}),
		errors: f.NewCounterVec(counter("holdfast_run_errors_total",
			"Runs that have ended in RUN_ERROR, by its code."), []string{"code"}),
		duration: f.NewHistogram(histogram("holdfast_run_duration_seconds",
			"Time from a run's start, resume or takeover in this process to its end.", .1, .5, 1, 5, 15, 60, 300, 900,
			3600, 14400)),
		running: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_runs_running",
			Help: "Runs that this process is running now."}),
		claims: f.NewCounterVec(counter("holdfast_claims_total",
			"Attempts to take over a run whose owner is gone, by result."), []string{"result"}),
		takeovers: f.NewCounter(counter("holdfast_takeovers_total", "Runs taken over from an owner that was gone.")),
	}
}

func newStepMetrics(f promauto.Factory) stepMetrics {
	return stepMetrics{
		iterations: f.NewCounter(counter("holdfast_iterations_total",
			"Completed iterations: an answer, and a result for each of its calls.")),
		modelCalls: f.NewCounterVec(counter("holdfast_model_calls_total", "Attempts of model calls, by result."),
			[]string{"agent", "result"}),
		// From a tenth of a second to the default timeout of a model call.
		modelDuration: f.NewHistogram(histogram("holdfast_model_call_duration_seconds",
			"Time from the start of an attempt of a model call to its end.", .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 60,
			120, 300, 600)),
		firstDelta: f.NewHistogram(histogram("holdfast_time_to_first_delta_seconds",
			"Time from the start of an attempt of a model call to its first delta.", .05, .1, .25, .5, 1, 2, 4, 8, 15,
			30, 60)),
		tokens: f.NewCounterVec(counter("holdfast_tokens_total",
			"Tokens that models reported; cached and cache_write are part of input, reasoning of output."),
			[]string{"agent", "kind"}),
		toolCalls: f.NewCounterVec(counter("holdfast_tool_calls_total",
			"Tool calls, by result; all frontend tools count as one."), []string{"tool", "result"}),
		// From a plain function to the default timeout of a tool call.
		toolDuration: f.NewHistogramVec(histogram("holdfast_tool_call_duration_seconds",
			"Time from the start of a tool call in this process to its end.", .001, .005, .025, .1, .25, .5, 1, 2.5, 5,
			10, 30, 60), []string{"tool"}),
		outsideCalls: f.NewCounterVec(counter("holdfast_outside_calls_total",
			"Calls that are finished from outside, by what became of them; refused: a result that came too "+
				"late, or was another one."), []string{"result"}),
	}
}

func newStoreMetrics(f promauto.Factory) storeMetrics {
	// A commit is a disk sync or a round trip; after ten seconds something is wrong.
	commit := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	return storeMetrics{
		checkpoints: f.NewHistogram(histogram("holdfast_checkpoint_duration_seconds",
			"Time that the store took to save a checkpoint: that of its commit.", commit...)),
		commits: f.NewHistogram(histogram("holdfast_commit_duration_seconds",
			"Time that the store took for a successful commit, with a checkpoint or without; each "+
				"moves the thread's head.", commit...)),
		errors: f.NewCounterVec(counter("holdfast_checkpoint_errors_total",
			"Attempts to commit that the store refused or did not answer."), []string{"error_type"}),
		records: f.NewCounter(counter("holdfast_records_total",
			"Records (AG-UI events) committed to the logs of threads.")),
		saved: f.NewCounter(counter("holdfast_pending_writes_saved_total",
			"Tool results saved before the checkpoint that includes them.")),
		loaded: f.NewCounter(counter("holdfast_pending_writes_loaded_total",
			"Resumes and takeovers that found such results; their tools did not run again.")),
		deleted: f.NewCounter(counter("holdfast_pending_writes_deleted_total",
			"Commits that cleared a thread's pending writes.")),
		durability: f.NewGaugeVec(prometheus.GaugeOpts{Name: "holdfast_store_durability",
			Help: "1 for the level of durability that the store had when the server started."}, []string{"level"}),
		perCheckpoint: f.NewHistogram(histogram("holdfast_pending_writes_per_checkpoint",
			"Tool results per checkpoint that includes any.", 1, 2, 3, 5, 8, 16, 32, 64)),
		saveErrors: f.NewCounter(counter("holdfast_pending_writes_errors_total",
			"Pending writes in failed attempts to commit; most are tried again.")),
		cleaned: f.NewCounterVec(counter("holdfast_retention_removed_total", "Removals by retention, by kind."),
			[]string{"what"}),
		looked: f.NewCounter(counter("holdfast_retention_looked_total",
			"Threads that retention has looked at.")),
		unreadable: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_threads_unreadable",
			Help: "Threads that cannot be read, as retention found when it last came past all of them."}),
		large: f.NewCounter(counter("holdfast_threads_large_total",
			"Runs that found their thread larger than the warning limit.")),
		lease: f.NewCounterVec(counter("holdfast_lease_renewals_total",
			"Attempts to renew this process's lease, three per lease, by result."), []string{"result"}),
	}
}

func newIndexMetrics(f promauto.Factory) indexMetrics {
	list := []string{"list"}
	return indexMetrics{
		lag: f.NewHistogramVec(histogram("holdfast_index_lag_seconds",
			"How much later than its time this process found in a list of the index that something was due for a "+
				"thread, or than it began to look.", .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600), list),
		entries: f.NewGaugeVec(prometheus.GaugeOpts{Name: "holdfast_index_entries",
			Help: "Threads in a list of the index for which something is due that could not be done yet."}, list),
		mended: f.NewCounterVec(counter("holdfast_index_mended_total",
			"Threads that were in a list of the index by mistake, and were taken out."), list),
	}
}

func newHookMetrics(f promauto.Factory) hookMetrics {
	return hookMetrics{
		notices: f.NewCounterVec(counter("holdfast_notices_total",
			"Events that middleware has reported, by the notice's name: a circuit that opened, a "+
				"budget that is used up."), []string{"notice"}),
		failed: f.NewCounterVec(counter("holdfast_middleware_failures_total", "Panics of middleware hooks."),
			[]string{"middleware", "hook"}),
		schemas: f.NewCounterVec(counter("holdfast_schema_changes_total",
			"Runs that continued from a checkpoint with other middleware states, by what was different; upgrade: it "+
				"was older than schemas."), []string{"change"}),
		names: &names{seen: map[string]bool{}, most: maxNames},
	}
}

func newHTTPMetrics(f promauto.Factory) httpMetrics {
	return httpMetrics{
		requests: f.NewCounterVec(counter("holdfast_http_requests_total",
			"Answered requests, by the pattern of their route."), []string{"route", "method", "code"}),
		duration: f.NewHistogramVec(histogram("holdfast_http_request_duration_seconds",
			"Time to answer a request; for a stream, the time that it was open.", .001, .005, .025, .1, .5, 2.5, 10,
			60, 600), []string{"route", "method"}),
		connections: f.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_http_connections", Help: "Open connections to the HTTP server, if it listens itself.",
		}),
		refused: f.NewCounter(counter("holdfast_http_connections_refused_total",
			"Connections that were closed at once because their address has as many as it may.")),
		streams: f.NewGauge(prometheus.GaugeOpts{Name: "holdfast_open_streams",
			Help: "Open Server-Sent Events streams."}),
		limits: f.NewCounterVec(counter("holdfast_limit_rejections_total",
			"Requests that were refused because a tenant or a user has as much as is allowed, by what it has too "+
				"much of and whose limit it is."), []string{"limit", "scope"}),
	}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Name: name, Help: help}
}

func histogram(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
}

// zero creates every series whose labels no configuration names.
func (m *Metrics) zero() {
	for _, outcome := range observe.Outcomes() { // of runs whose agent is no longer configured
		m.runs.total.WithLabelValues(other, string(outcome))
	}
	m.steps.toolCalls.WithLabelValues(other, string(observe.ToolRefused)) // of tools that there are not
	m.steps.toolCalls.WithLabelValues(frontendTool, string(observe.ToolFrontend))
	for _, result := range observe.OutsideResults() {
		m.steps.outsideCalls.WithLabelValues(string(result))
	}
	for _, code := range append(known(), other) {
		m.runs.errors.WithLabelValues(code)
	}
	for _, result := range observe.TakeoverResults() {
		m.runs.claims.WithLabelValues(string(result))
	}
	for _, kind := range errorTypes() {
		m.store.errors.WithLabelValues(kind)
	}
	for _, change := range []string{"upgrade", "removed", "added", "version"} {
		m.hooks.schemas.WithLabelValues(change)
	}
	for _, what := range []string{"threads", "checkpoints", "messages"} {
		m.store.cleaned.WithLabelValues(what)
	}
	for _, limit := range limitNames {
		for _, scope := range limitScopes {
			m.endpoints.limits.WithLabelValues(limit, scope)
		}
	}
	for _, hook := range hookNames { // of the server's own limits, which are middleware too
		m.hooks.failed.WithLabelValues(other, hook)
	}
	for _, list := range observe.IndexLists() {
		m.indexLooked(observe.IndexLook{List: list})
	}
	m.store.lease.WithLabelValues("success")
	m.store.lease.WithLabelValues("error")
	for _, result := range reloadResults {
		m.reloads.total.WithLabelValues(result)
	}
}

// zeroMiddleware creates the series of a middleware: one for each hook that it has, and
// one for each notice that it lists.
func (m *Metrics) zeroMiddleware(mw *holdfast.Middleware) {
	for i, set := range []bool{mw.Run != nil, mw.BeforeIteration != nil, mw.AfterIteration != nil, mw.Batch != nil,
		mw.Model != nil, mw.Tool != nil} {
		if set {
			m.hooks.failed.WithLabelValues(label(mw.Name), hookNames[i])
		}
	}
	for _, notice := range mw.Notices {
		m.hooks.notices.WithLabelValues(m.hooks.names.label(notice))
	}
}
