package metrics

import (
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The reports of the engine and the HTTP surface, and the metrics that each changes.

// Observer counts what an engine says.
func (m *Metrics) Observer() observe.Observer {
	return observe.Observer{
		RunStarted:    m.runStarted,
		RunEnded:      m.runEnded,
		SchemaChanged: m.schemaChanged,
		TakenOver:     m.takenOver,
		ModelCalled:   m.modelCalled,
		ModelFailed:   m.modelFailed,
		FellBack:      m.fellBack,
		PromptSent:    m.promptSent,
		ToolCalled:    m.toolCalled,
		OutsideCalled: m.outsideCalled,
		Notified:      m.notified,
		HookFailed:    m.hookFailed,
		IterationDone: m.iterationDone,
		Committed:     m.committed,
		LeaseRenewed:  m.leaseRenewed,
		Cleaned:       m.cleaned,
		Walked:        m.walked,
		IndexLooked:   m.indexLooked,
		Grown:         m.grown,
	}
}

// runStarted counts the run as running. If a resume or a takeover found finished
// results, it counts one load of pending writes.
func (m *Metrics) runStarted(_ holdfast.Iteration, _ bool, kept int) {
	m.runs.running.Inc()
	if kept > 0 {
		m.store.loaded.Inc()
	}
}

// runEnded counts the run by its outcome. A run that was left to another process has not
// ended, so its duration is not recorded.
func (m *Metrics) runEnded(at holdfast.Iteration, outcome holdfast.Outcome, code string, took time.Duration) {
	m.runs.running.Dec()
	m.ended(at, outcome, code)
	if outcome != observe.OutcomeLeft {
		m.runs.duration.Observe(took.Seconds())
	}
}

func (m *Metrics) ended(at holdfast.Iteration, outcome holdfast.Outcome, code string) {
	m.runs.total.WithLabelValues(m.agent(at.Agent), oneOf(observe.Outcomes(), outcome)).Inc()
	if code != "" {
		m.runs.errors.WithLabelValues(oneOf(known(), code)).Inc()
	}
}

// takenOver counts the claim. A run that nobody continues has ended in an error without
// having run here.
func (m *Metrics) takenOver(at holdfast.Iteration, result observe.TakeoverResult, code string) {
	m.runs.claims.WithLabelValues(oneOf(observe.TakeoverResults(), result)).Inc()
	switch result {
	case observe.TakeoverDone:
		m.runs.takeovers.Inc()
	case observe.TakeoverCut:
		m.ended(at, holdfast.OutcomeError, code)
	}
}

// modelCalled counts and times an attempt of a model call, and counts its tokens
// whatever its result, because they were paid for.
func (m *Metrics) modelCalled(
	at holdfast.Iteration, result observe.ModelResult, first, took time.Duration, usage *holdfast.Usage,
) {
	agent := m.agent(at.Agent)
	m.steps.modelCalls.WithLabelValues(agent, oneOf(observe.ModelResults(), result)).Inc()
	m.steps.modelDuration.Observe(took.Seconds())
	if first >= 0 {
		m.steps.firstDelta.Observe(first.Seconds())
	}
	if usage == nil {
		return
	}
	m.tokens(agent, "input", usage.InputTokens)
	m.tokens(agent, "output", usage.OutputTokens)
	m.tokens(agent, "cached", usage.CachedInput)
	m.tokens(agent, "cache_write", usage.CacheWriteInput)
	m.tokens(agent, "reasoning", usage.ReasoningTokens)
}

// tokens adds what a provider reported. A negative number is the provider's mistake and
// is skipped, because a counter would panic.
func (m *Metrics) tokens(agent, kind string, n *int64) {
	if n != nil && *n > 0 {
		m.steps.tokens.WithLabelValues(agent, kind).Add(float64(*n))
	}
}

// toolCalled counts a tool call, and times it if it ran here. The names of frontend
// tools and of unknown tools come from clients and models, so they are never labels.
func (m *Metrics) toolCalled(_ holdfast.Iteration, tool string, result observe.ToolResult, took time.Duration) {
	if result == observe.ToolFrontend {
		m.steps.toolCalls.WithLabelValues(frontendTool, string(observe.ToolFrontend)).Inc()
		return
	}
	started := result != observe.ToolRefused && result != observe.ToolReused
	name := m.tool(tool, started)
	m.steps.toolCalls.WithLabelValues(name, oneOf(observe.ToolResults(), result)).Inc()
	if started {
		m.steps.toolDuration.WithLabelValues(name).Observe(took.Seconds())
	}
}

// outsideCalled counts what became of a call that is finished from outside.
func (m *Metrics) outsideCalled(_ holdfast.Iteration, _ string, result observe.OutsideResult) {
	m.steps.outsideCalls.WithLabelValues(oneOf(observe.OutsideResults(), result)).Inc()
}

// notified counts the notice. Its name should be a constant of a middleware; for one
// that invents names, notices count as other once there are a hundred names.
func (m *Metrics) notified(_ holdfast.Iteration, name string) {
	m.hooks.notices.WithLabelValues(m.hooks.names.label(name)).Inc()
}

// hookFailed counts the panic.
func (m *Metrics) hookFailed(_ holdfast.Iteration, middleware, hook string) {
	m.hooks.failed.WithLabelValues(among(m.configured.Load().middleware, middleware), hook).Inc()
}

// schemaChanged counts the run once for each kind of difference.
func (m *Metrics) schemaChanged(_ holdfast.Iteration, change *state.SchemaChange) {
	for kind, n := range map[string]int{"removed": len(change.Removed), "added": len(change.Added),
		"version": len(change.Changed)} {
		if n > 0 {
			m.hooks.schemas.WithLabelValues(kind).Inc()
		}
	}
	if change.Upgrade {
		m.hooks.schemas.WithLabelValues("upgrade").Inc()
	}
}

// iterationDone counts the iteration and the results that its checkpoint includes.
func (m *Metrics) iterationDone(_ holdfast.Iteration, results int) {
	m.steps.iterations.Inc()
	if results > 0 {
		m.store.perCheckpoint.Observe(float64(results))
	}
}

// committed times a successful commit, and each checkpoint in it, and counts a failed
// one, each with its pending writes.
func (m *Metrics) committed(_ holdfast.Iteration, c *store.Commit, took time.Duration, err error) {
	pending, checkpoints := 0, 0
	for i := range c.Put {
		switch c.Put[i].Kind {
		case store.KindPending:
			pending++
		case store.KindCheckpoint:
			checkpoints++
		}
	}
	if err != nil {
		m.store.errors.WithLabelValues(errorType(err)).Inc()
		m.store.saveErrors.Add(float64(pending))
		return
	}
	m.store.commits.Observe(took.Seconds())
	for range checkpoints { // usually there is at most one in a commit
		m.store.checkpoints.Observe(took.Seconds())
	}
	m.store.records.Add(float64(len(c.Records)))
	m.store.saved.Add(float64(pending))
	if slices.Contains(c.Clear, store.KindPending) {
		m.store.deleted.Inc()
	}
}

// leaseRenewed counts the attempt. This is where an idle server first shows that it has
// lost its store.
func (m *Metrics) leaseRenewed(err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.store.lease.WithLabelValues(result).Inc()
}

// cleaned counts what retention has removed.
func (m *Metrics) cleaned(done threads.Cleaned) {
	m.store.cleaned.WithLabelValues("threads").Add(float64(done.Threads))
	m.store.cleaned.WithLabelValues("checkpoints").Add(float64(done.Checkpoints))
	m.store.cleaned.WithLabelValues("messages").Add(float64(done.Messages))
	m.store.looked.Inc()
}

// walked notes how many threads cannot be read.
func (m *Metrics) walked(unreadable int) { m.store.unreadable.Set(float64(unreadable)) }

// indexLooked notes what a look into a list of the index has found.
func (m *Metrics) indexLooked(look observe.IndexLook) {
	lag := m.index.lag.WithLabelValues(look.List)
	for _, late := range look.Late {
		lag.Observe(late.Seconds())
	}
	m.index.entries.WithLabelValues(look.List).Set(float64(look.Left))
	m.index.mended.WithLabelValues(look.List).Add(float64(look.Mended))
}

// grown counts a run whose thread is larger than it should be.
func (m *Metrics) grown(holdfast.Iteration, int64) { m.store.large.Inc() }

// RequestDone counts and times a request. The caller makes sure that the route is the
// pattern that the request matched and that the method is a standard one, or a fixed
// word for all others.
func (m *Metrics) RequestDone(route, method string, code int, took time.Duration) {
	m.endpoints.requests.WithLabelValues(route, method, statusCode(code)).Inc()
	m.endpoints.duration.WithLabelValues(route, method).Observe(took.Seconds())
}

// ConnectionsChanged counts n more connections as open, or fewer.
func (m *Metrics) ConnectionsChanged(n int) { m.endpoints.connections.Add(float64(n)) }

// ConnectionRefused counts a connection that was closed because its address has too many.
func (m *Metrics) ConnectionRefused() { m.endpoints.refused.Inc() }

// LimitRejected counts a request that was refused because of a limit: of runs, streams,
// threads or bytes, and of a tenant or a user.
func (m *Metrics) LimitRejected(limit, scope string) {
	m.endpoints.limits.WithLabelValues(oneOf(limitNames, limit), oneOf(limitScopes, scope)).Inc()
}

// StreamOpened counts a stream as open.
func (m *Metrics) StreamOpened() { m.endpoints.streams.Inc() }

// StreamClosed counts it as closed.
func (m *Metrics) StreamClosed() { m.endpoints.streams.Dec() }
