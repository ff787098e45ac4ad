package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/server"
)

// scrape returns what the server's /metrics has.
func scrape(s *server.Server) string {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	return w.Body.String()
}

// names returns the metrics that a registry has.
func names(t *testing.T, g prometheus.Gatherer) []string {
	t.Helper()
	var out []string
	for _, family := range must(g.Gather())(t) {
		out = append(out, family.GetName())
	}
	return out
}

// TestRegisterer: a program's registry gets the server's metrics while the server lives;
// /metrics serves the server's own registry, or what the configuration says.
func TestRegisterer(t *testing.T) {
	mine := prometheus.NewRegistry()
	mine.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "shop_orders_total", Help: "Orders."}))
	c := config(t)
	c.Registerer = mine
	s := must(server.New(c))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := names(t, mine)
	if !slices.Contains(got, "holdfast_runs_running") || !slices.Contains(got, "shop_orders_total") ||
		slices.Contains(got, "go_goroutines") {
		t.Errorf("the registry has %q", got)
	}
	if page := scrape(s); !strings.Contains(page, "holdfast_runs_running 0") ||
		!strings.Contains(page, "go_goroutines") || strings.Contains(page, "shop_orders") {
		t.Errorf("/metrics has %s", page)
	}
	again := config(t)
	again.Registerer = mine
	if _, err := server.New(again); err == nil || !strings.Contains(err.Error(), "Config.Registerer") {
		t.Errorf("twice in one registry: %v", err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if got := names(t, mine); !slices.Equal(got, []string{"shop_orders_total"}) {
		t.Errorf("after the shutdown the registry has %q", got)
	}
	again.Gatherer = mine
	s = must(server.New(again))(t)
	if page := scrape(s); !strings.Contains(page, "shop_orders_total 0") ||
		!strings.Contains(page, "holdfast_runs_running 0") || strings.Contains(page, "go_goroutines") {
		t.Errorf("/metrics has %s", page)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCountersBeforeTheirFirstEvent: /metrics of a server on which nothing has happened has
// every counter of the documentation, at 0, also those of the middleware that is configured.
func TestCountersBeforeTheirFirstEvent(t *testing.T) {
	text := string(must(os.ReadFile("../docs/metrics.md"))(t))
	c := config(t)
	c.Agents[0].Fallbacks = []holdfast.Model{c.Agents[0].Model}
	c.Agents[0].Middleware = []holdfast.Middleware{budget.New(budget.Options{Thread: budget.Limit{Tokens: 1}})}
	s := must(server.New(c))(t)
	page := scrape(s)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	counters := regexp.MustCompile(`(?m)^\| `+"`(holdfast_[a-z_]+_total)`"+` \| counter \|`).
		FindAllStringSubmatch(text, -1)
	if len(counters) < 20 {
		t.Errorf("only %d counters were found", len(counters))
	}
	for _, counter := range counters {
		// Which statuses a route answers is known only once it has answered.
		if at0 := regexp.MustCompile(`(?m)^` + counter[1] + `(\{.*\})? 0$`); !at0.MatchString(page) &&
			counter[1] != "holdfast_http_requests_total" {
			t.Errorf("%s has no series at 0", counter[1])
		}
	}
	for _, want := range []string{
		`holdfast_notices_total{notice="holdfast.budget_exceeded"} 0`,
		`holdfast_middleware_failures_total{hook="model",middleware="holdfast.budget"} 0`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
}

// TestObserver: a program's observer is told what the engine does, and the metrics are too.
func TestObserver(t *testing.T) {
	var ended atomic.Value
	c := config(t)
	c.Observer = observe.Observer{
		RunEnded: func(at holdfast.Iteration, outcome holdfast.Outcome, _ string, _ time.Duration) {
			ended.Store(at.Run + " " + string(outcome))
		},
	}
	s := must(server.New(c))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	all(t, s.Run(t.Context(), me, server.Input{Run: "r", Text: "hi"}))
	if err := s.Shutdown(t.Context()); err != nil { // it waits for the run to be over
		t.Error(err)
	}
	if got := ended.Load(); got != "r success" {
		t.Errorf("the observer was told %v", got)
	}
	if page := scrape(s); !strings.Contains(page, `holdfast_runs_total{agent="a",outcome="success"} 1`) {
		t.Error("the metrics do not count the run")
	}
}
