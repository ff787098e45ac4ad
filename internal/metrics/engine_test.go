package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/metrics"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// demo is an engine with the demo's model and tools, and its metrics.
type demo struct {
	engine *looptest.Engine
	m      *metrics.Metrics
	store  *looptest.Mortal
}

func start(t *testing.T, shared store.Store, change func(*looptest.Config)) *demo {
	t.Helper()
	agents := []holdfast.Agent{
		{Name: "demo", Model: scripted.New(scripted.Options{}), Tools: tools.Builtin(time.Now, 0, nil)},
	}
	d := &demo{m: metrics.New(agents), store: &looptest.Mortal{Store: shared}}
	d.engine = looptest.Start(t, d.store, func(c *looptest.Config) {
		c.Observer = d.m.Observer()
		if change != nil {
			change(c)
		}
	}, agents...)
	return d
}

func input(thread, run, text string) *agui.RunAgentInput {
	in := &agui.RunAgentInput{ThreadID: thread, RunID: run, ProtocolVersion: agui.ProtocolVersion}
	if text != "" {
		in.Messages = []agui.Message{
			agui.FromDomain(holdfast.Message{ID: "m" + run, Role: holdfast.RoleUser, Text: text}),
		}
	}
	return in
}

// say posts a text and returns the last event of the stream.
func (d *demo) say(t *testing.T, in *agui.RunAgentInput) agui.Event {
	t.Helper()
	reply, err := d.engine.Owner.Post(t.Context(), looptest.Alice, "", in)
	if err != nil {
		t.Fatal(err)
	}
	var last agui.Event
	for frames, err := range reply.Whole() {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			if last, err = agui.DecodeEvent(f.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
	synctest.Wait()
	return last
}

// series returns what a scrape shows: the value of each line by its name and labels.
func series(t *testing.T, m *metrics.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	out := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); strings.HasPrefix(line, "holdfast_") {
			out[line[:i]] = line[i+1:]
		}
	}
	return out
}

func want(t *testing.T, m *metrics.Metrics, values map[string]string) {
	t.Helper()
	got := series(t, m)
	for name, value := range values {
		if got[name] != value {
			t.Errorf("%s is %q, want %s", name, got[name], value)
		}
	}
}

// TestRun: each step of a run with parallel tools is counted and timed.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, memstore.New(), nil)
		ended, ok := d.say(t, input("t", "r1", "parallel 3")).(agui.RunFinished)
		if !ok || len(ended.Usage) != 1 {
			t.Fatalf("%+v", ended)
		}
		at, err := d.engine.Owner.Current(t.Context(), looptest.Alice, "t")
		if err != nil {
			t.Fatal(err)
		}
		records, _, _ := strings.Cut(at.Last().String(), "-")
		want(t, d.m, map[string]string{
			`holdfast_runs_total{agent="demo",outcome="success"}`:          "1",
			`holdfast_runs_running`:                                        "0",
			`holdfast_run_duration_seconds_sum`:                            "1",
			`holdfast_iterations_total`:                                    "2",
			`holdfast_model_calls_total{agent="demo",result="success"}`:    "2",
			`holdfast_model_call_duration_seconds_count`:                   "2",
			`holdfast_time_to_first_delta_seconds_count`:                   "2",
			`holdfast_tokens_total{agent="demo",kind="input"}`:             fmt.Sprint(*ended.Usage[0].InputTokens),
			`holdfast_tokens_total{agent="demo",kind="output"}`:            fmt.Sprint(*ended.Usage[0].OutputTokens),
			`holdfast_tool_calls_total{result="success",tool="wait"}`:      "2",
			`holdfast_tool_calls_total{result="success",tool="lookup"}`:    "1",
			`holdfast_tool_call_duration_seconds_sum{tool="wait"}`:         "1.5",
			`holdfast_pending_writes_per_checkpoint_count`:                 "1",
			`holdfast_pending_writes_per_checkpoint_sum`:                   "3",
			`holdfast_records_total`:                                       records,
			`holdfast_checkpoint_errors_total{error_type="other"}`:         "0",
			`holdfast_pending_writes_loaded_total`:                         "0",
			`holdfast_tool_calls_total{result="frontend",tool="frontend"}`: "0",
			`holdfast_run_errors_total{code="model_failed"}`:               "0",
			// input, the iteration with calls, final
			`holdfast_checkpoint_duration_seconds_bucket{le="0.0005"}`: "3",
			`holdfast_checkpoint_duration_seconds_count`:               "3",
			`holdfast_commit_duration_seconds_bucket{le="0.0005"}`: series(t,
				d.m)[`holdfast_commit_duration_seconds_count`],
			`holdfast_lease_renewals_total{result="error"}`:                   "0",
			`holdfast_checkpoint_duration_seconds_sum`:                        "0",
			`holdfast_tool_calls_total{result="interrupt",tool="ask_person"}`: "0",
		})
		// The last result may be in the commit of the checkpoint that includes it, and then
		// it is not a pending write; the others came earlier.
		if got := series(t, d.m)[`holdfast_pending_writes_saved_total`]; got != "2" && got != "3" {
			t.Errorf("%s pending writes were saved", got)
		}
	})
}

// TestModelTries: each attempt of a model call is counted by its result.
func TestModelTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, memstore.New(), nil)
		d.say(t, input("t", "r1", "flaky"))
		d.say(t, input("u", "r1", "fail"))
		want(t, d.m, map[string]string{
			`holdfast_model_calls_total{agent="demo",result="error"}`:     "2",
			`holdfast_model_calls_total{agent="demo",result="truncated"}`: "1",
			`holdfast_model_calls_total{agent="demo",result="success"}`:   "1",
			`holdfast_runs_total{agent="demo",outcome="success"}`:         "1",
			`holdfast_runs_total{agent="demo",outcome="error"}`:           "1",
			`holdfast_run_errors_total{code="model_failed"}`:              "1",
		})
	})
}

// TestNoLabelsFromOutside: neither a client nor a model can create a label value, so
// neither can fill the memory of the server or of Prometheus.
func TestNoLabelsFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The model calls the tool that the user names, whether or not it exists.
		obedient := holdfast.ModelFunc(func(_ context.Context,
			req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				if len(req.Messages) > 1 {
					yield(holdfast.Delta{Text: "done", Finish: holdfast.FinishStop}, nil)
					return
				}
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: req.Messages[0].Text, Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
			}
		})
		d := start(t, memstore.New(), func(c *looptest.Config) { c.Agents[0].Model = obedient })
		d.say(t, input("warm", "up", "nobody"))
		before := series(t, d.m)
		for i := range 20 {
			in := input(fmt.Sprintf("evil-thread-%d", i), fmt.Sprintf("evil-run-%d", i), fmt.Sprintf("evil_tool_%d", i))
			if i%2 == 0 {
				in.Tools = []agui.Tool{
					{
						Name:        fmt.Sprintf("evil_tool_%d", i),
						Description: "d",
						Parameters:  json.RawMessage(`{"type":"object"}`),
					},
				}
			}
			d.say(t, in)
		}
		after := series(t, d.m)
		for name := range after {
			if _, ok := before[name]; !ok || strings.Contains(name, "evil") {
				t.Errorf("a client made the series %s", name)
			}
		}
		want(t, d.m, map[string]string{
			`holdfast_tool_calls_total{result="frontend",tool="frontend"}`: "10",
			`holdfast_tool_calls_total{result="refused",tool="other"}`:     "11",
		})
	})
}

// TestQuestion: a question is an interrupt, not an error, and the call is made again
// with the answer.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, memstore.New(), nil)
		asked, ok := d.say(t, input("t", "r1", "ask me why")).(agui.RunFinished)
		if !ok || asked.Outcome == nil || len(asked.Outcome.Interrupts) != 1 {
			t.Fatalf("%+v", asked)
		}
		want(t, d.m, map[string]string{`holdfast_iterations_total`: "0", `holdfast_runs_running`: "0"})
		in := input("t", "r2", "")
		in.Resume = []agui.ResumeEntry{
			{
				InterruptID: asked.Outcome.Interrupts[0].ID,
				Status:      agui.ResumeResolved,
				Payload:     []byte(`{"answer":"because"}`),
			},
		}
		d.say(t, in)
		want(t, d.m, map[string]string{
			`holdfast_runs_total{agent="demo",outcome="interrupt"}`:           "1",
			`holdfast_runs_total{agent="demo",outcome="success"}`:             "1",
			`holdfast_tool_calls_total{result="interrupt",tool="ask_person"}`: "1",
			`holdfast_tool_calls_total{result="success",tool="ask_person"}`:   "1",
			`holdfast_iterations_total`:                                       "2",
		})
	})
}

// TestTakeover: the process that loses its store counts the failures and the run that it
// leaves; the process that takes over counts the takeover, and the results that it did
// not have to produce again.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		one := start(t, shared, nil)
		if _, err := one.engine.Owner.Post(t.Context(), looptest.Alice, "",
			input("t", "r1", "parallel 3")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait() // the lookup is saved; the others wait
		want(t, one.m, map[string]string{`holdfast_runs_running`: "1", `holdfast_pending_writes_saved_total`: "1"})
		one.store.Dead.Store(true)
		two := start(t, shared, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, two.m, map[string]string{
			`holdfast_claims_total{result="taken_over"}`:                "1",
			`holdfast_takeovers_total`:                                  "1",
			`holdfast_pending_writes_loaded_total`:                      "1",
			`holdfast_tool_calls_total{result="success",tool="lookup"}`: "0",
			`holdfast_tool_calls_total{result="success",tool="wait"}`:   "2",
			`holdfast_pending_writes_per_checkpoint_sum`:                "3",
			`holdfast_runs_total{agent="demo",outcome="success"}`:       "1",
		})
		want(t, one.m, map[string]string{
			`holdfast_runs_total{agent="demo",outcome="left"}`: "1",
			`holdfast_runs_running`:                            "0",
			`holdfast_run_duration_seconds_count`:              "0",
		})
		for _, name := range []string{
			`holdfast_checkpoint_errors_total{error_type="unavailable"}`, `holdfast_pending_writes_errors_total`,
			`holdfast_lease_renewals_total{result="error"}`,
		} {
			if got := series(t, one.m)[name]; got == "0" || got == "" {
				t.Errorf("%s is %q", name, got)
			}
		}
	})
}

// TestCutOff: with recovery off, a run that nobody continues counts as ended in an
// error.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		one := start(t, shared, nil)
		if _, err := one.engine.Owner.Post(t.Context(), looptest.Alice, "", input("t", "r1", "wait 5")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		one.store.Dead.Store(true)
		two := start(t, shared, func(c *looptest.Config) { c.Recover = false })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want(t, two.m, map[string]string{
			`holdfast_claims_total{result="cut"}`:               "1",
			`holdfast_takeovers_total`:                          "0",
			`holdfast_runs_total{agent="demo",outcome="error"}`: "1",
			`holdfast_run_errors_total{code="cut_off"}`:         "1",
			`holdfast_runs_running`:                             "0",
		})
	})
}

// TestFromTheStart: series that the configuration determines can be scraped before
// anything has happened, so that an alert sees the first event.
func TestFromTheStart(t *testing.T) {
	d := metrics.New([]holdfast.Agent{{Name: "a\xff", Tools: tools.Builtin(time.Now, 0, nil)}})
	names := slices.Collect(func(yield func(string) bool) {
		for name := range series(t, d) {
			if !yield(name) {
				return
			}
		}
	})
	for _, name := range []string{
		`holdfast_runs_total{agent="a` + "\uFFFD" + `",outcome="error"}`,
		`holdfast_tool_calls_total{result="error",tool="calculate"}`,
		`holdfast_run_errors_total{code="other"}`, `holdfast_checkpoint_errors_total{error_type="timeout"}`,
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not there", name)
		}
	}
}
