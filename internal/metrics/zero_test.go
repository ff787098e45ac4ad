package metrics_test

import (
	"cmp"
	"context"
	"iter"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/internal/metrics"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// later are the metrics that appear with their first event, each with the reason.
var later = map[string]string{
	"holdfast_http_requests_total":           "the statuses of a route are known only once it has answered",
	"holdfast_http_request_duration_seconds": "the routes belong to the HTTP server, which metrics do not know",
}

// modelNamed is a model that is never asked.
type modelNamed string

func (m modelNamed) ModelName() (string, string) { return "test", string(m) }

// Stream implements [holdfast.Model].
func (m modelNamed) Stream(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(func(holdfast.Delta, error) bool) {}
}

// guarded are agents with tools and with a middleware that has every hook.
func guarded() []holdfast.Agent {
	return []holdfast.Agent{
		{
			Name:      "a",
			Tools:     []holdfast.Tool{named("look")},
			Model:     modelNamed("one"),
			Fallbacks: []holdfast.Model{modelNamed("two")},
			Toolsets:  []holdfast.Toolset{serverNamed{name: "github"}},
			Middleware: []holdfast.Middleware{{
				Name: "acme.guard", Notices: []string{"acme.refused"},
				Run:             func(next holdfast.RunCall) holdfast.RunCall { return next },
				BeforeIteration: func(context.Context, *holdfast.Iteration) error { return nil },
				AfterIteration:  func(context.Context, *holdfast.Iteration, *holdfast.IterationResult) {},
				Model:           func(next holdfast.ModelCall) holdfast.ModelCall { return next },
				Batch:           func(context.Context, *holdfast.Batch) error { return nil },
				Tool:            func(next holdfast.ToolHandler) holdfast.ToolHandler { return next },
			}},
		},
	}
}

// TestEveryMetricIsThere: on a fresh server each metric has a series, so that increase()
// sees its first event.
func TestEveryMetricIsThere(t *testing.T) {
	m := metrics.New(guarded())
	there := map[string]bool{}
	for name := range series(t, m) {
		name, _, _ = strings.Cut(name, "{")
		there[suffix.ReplaceAllString(name, "")], there[name] = true, true
	}
	described := make(chan *prometheus.Desc, 1000)
	m.Collector().Describe(described)
	close(described)
	name := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	counted := 0
	for d := range described {
		counted++
		n := name.FindStringSubmatch(d.String())[1]
		if why, ok := later[n]; there[n] == ok {
			t.Errorf("%s is on a fresh server: %t; the reason why it is not: %s", n, there[n], cmp.Or(why, "none"))
		}
	}
	if counted < 30 {
		t.Errorf("only %d metrics were found", counted)
	}
}

// TestFirstEvents: whatever happens to what is configured counts in a series that was
// there before.
func TestFirstEvents(t *testing.T) {
	m := metrics.New(guarded())
	before := series(t, m)
	everything(t, m)
	for name, value := range series(t, m) {
		metric, _, _ := strings.Cut(suffix.ReplaceAllString(strings.SplitN(name, "{", 2)[0], ""), "{")
		if _, ok := before[name]; !ok && later[metric] == "" {
			t.Errorf("%s appears with its first event, as %s", name, value)
		}
	}
}

// everything lets everything happen once that can happen to the agent of guarded.
func everything(t *testing.T, m *metrics.Metrics) {
	o, at := m.Observer(), holdfast.Iteration{Agent: "a"}
	one := int64(1)
	codes := allCodes(t)
	for _, result := range observe.ModelResults() {
		o.ModelCalled(at, result, time.Second, time.Second,
			&holdfast.Usage{InputTokens: &one, OutputTokens: &one, CachedInput: &one, ReasoningTokens: &one})
	}
	for _, kind := range append(failure.Kinds(), "", "an extension's") {
		for _, model := range []string{"one", "two"} {
			o.ModelFailed(at, observe.ModelFailure{Provider: "test", Model: model, Kind: kind})
		}
	}
	o.FellBack(at, "test/one", "test/two")
	o.FellBack(at, "test/two", "test/one")
	for _, result := range observe.ToolResults() {
		o.ToolCalled(at, "look", result, time.Second)
	}
	o.ToolCalled(at, "a tool that there is not", observe.ToolRefused, 0)
	o.Notified(at, "acme.refused")
	for _, hook := range []string{hooks.Run, hooks.BeforeIteration, hooks.AfterIteration, hooks.Batch, hooks.Model,
		hooks.Tool} {
		o.HookFailed(at, "acme.guard", hook)
		o.HookFailed(at, "holdfast.iteration_limit", hook)
	}
	for _, agent := range []string{"a", "an agent of an older configuration"} {
		for _, outcome := range observe.Outcomes() {
			for code := range codes {
				o.RunStarted(at, true, 1)
				o.RunEnded(holdfast.Iteration{Agent: agent}, outcome, code, time.Second)
			}
		}
	}
	for _, result := range observe.TakeoverResults() {
		o.TakenOver(at, result, "cut_off")
	}
	o.SchemaChanged(at, &state.SchemaChange{
		Removed: []string{"a.b"},
		Added:   []string{"a.c"},
		Changed: []state.VersionChange{{}},
		Upgrade: true,
	})
	o.IterationDone(at, 1)
	o.Committed(
		at,
		&store.Commit{
			Put:     []store.Value{{Kind: store.KindPending}},
			Records: [][]byte{nil},
			Clear:   []store.Kind{store.KindPending},
		},
		0,
		nil,
	)
	for _, err := range []error{store.ErrConflict, store.ErrFenced, store.ErrInvalid, store.ErrUnreadable,
		store.ErrVersionTooNew, context.Canceled, context.DeadlineExceeded} {
		o.Committed(at, &store.Commit{}, 0, err)
		o.LeaseRenewed(err)
	}
	o.LeaseRenewed(nil)
	o.Cleaned(threads.Cleaned{Threads: 1, Checkpoints: 1, Messages: 1})
	o.Walked(1)
	o.IndexLooked(observe.IndexLook{List: "due", Late: []time.Duration{time.Second}, Left: 1, Mended: 1})
	o.Grown(at, 1)
	for _, limit := range []string{"runs", "streams", "threads", "bytes"} {
		m.LimitRejected(limit, "tenant")
		m.LimitRejected(limit, "user")
	}
	m.StreamOpened()
	m.ConnectionsChanged(1)
	m.ConnectionRefused()
}

// TestAdd: agents that come later have their series from then on, those of agents that are
// gone stay, and a registry that has the metrics from the beginning shows all of it.
func TestAdd(t *testing.T) {
	m := metrics.New([]holdfast.Agent{{Name: "gone", Model: modelNamed("old"), Tools: []holdfast.Tool{named("dig")}}})
	m.CircuitsOpen(func(_, model string) int { return len(model) })
	m.Observer().RunEnded(holdfast.Iteration{Agent: "gone"}, holdfast.OutcomeSuccess, "", time.Second)
	var done sync.WaitGroup
	done.Go(func() { // runs do not wait for that
		for range 100 {
			m.Observer().RunEnded(holdfast.Iteration{Agent: "gone"}, holdfast.OutcomeSuccess, "", time.Second)
		}
	})
	m.Add(guarded())
	done.Wait()
	m.Observer().RunEnded(holdfast.Iteration{Agent: "a"}, holdfast.OutcomeSuccess, "", time.Second)
	want(t, m, map[string]string{
		`holdfast_runs_total{agent="gone",outcome="success"}`:                     "101",
		`holdfast_runs_total{agent="a",outcome="success"}`:                        "1",
		`holdfast_tool_calls_total{result="success",tool="look"}`:                 "0",
		`holdfast_tool_calls_total{result="success",tool="dig"}`:                  "0",
		`holdfast_model_circuit_open{model="old",provider="test"}`:                "3",
		`holdfast_model_circuit_open{model="two",provider="test"}`:                "3",
		`holdfast_model_fallbacks_total{agent="a",from="test/one",to="test/two"}`: "0",
		`holdfast_middleware_failures_total{hook="tool",middleware="acme.guard"}`: "0",
		`holdfast_model_failures_total{kind="quota",model="one",provider="test"}`: "0",
		`holdfast_prompts_total{cut="none",model="one",provider="test"}`:          "0",
	})
}
