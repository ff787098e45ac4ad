package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-agents/holdfast"
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
	if !slices.Contains(got, "holdfast_runs_running") || !slices.Contains(got, "shop_orders_total") || slices.Contains(got, "go_goroutines") {
		t.Errorf("the registry has %q", got)
	}
	if page := scrape(s); !strings.Contains(page, "holdfast_runs_running 0") || !strings.Contains(page, "go_goroutines") || strings.Contains(page, "shop_orders") {
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
	if page := scrape(s); !strings.Contains(page, "shop_orders_total 0") || !strings.Contains(page, "holdfast_runs_running 0") || strings.Contains(page, "go_goroutines") {
		t.Errorf("/metrics has %s", page)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestObserver: a program's observer is told what the engine does, and the metrics are too.
func TestObserver(t *testing.T) {
	var ended atomic.Value
	c := config(t)
	c.Observer = observe.Observer{RunEnded: func(at holdfast.Iteration, outcome holdfast.Outcome, _ string, _ time.Duration) {
		ended.Store(at.Run + " " + string(outcome))
	}}
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
