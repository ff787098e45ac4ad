package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/server"
)

// TestFairnessSample: while one tenant sends the largest requests, another one's runs are
// served, on both stores. How long that takes is measured by make fairness, not here: this
// server waits for whatever a busy machine is slow at. CI takes one kind of request on each
// store.
func TestFairnessSample(t *testing.T) {
	t.Parallel()
	all := shapes()
	for shift, name := range []string{"embedded", "Redis"} {
		store := func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "data") }
		if name == "Redis" {
			store = func(t *testing.T) string { return redistest.Start(t).URL() + "?read_timeout=1h&write_timeout=1h" }
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, h, err := fairServer(store(t), func(c *server.Config) {
				c.StoreTimeout, c.BodyTimeout, c.Lease, c.MinRate = time.Hour, time.Hour, time.Hour, -1
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.StartEngine(t.Context()); err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(h)
			t.Cleanup(func() {
				web.CloseClientConnections()
				if err := s.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				web.Close()
				http.DefaultClient.CloseIdleConnections()
			})
			f := fairness{commits: 20, clients: 2, enough: 2}
			for _, shape := range testkit.Sample(t, len(all), shift, all) {
				m, err := f.against(web.URL, shape)
				if err != nil {
					t.Errorf("%s: %v", shape.name, err)
				} else if m.refused > 0 || len(m.beside) < f.commits {
					t.Errorf("%s: %d of the largest requests were refused; %d commits of the other tenant", shape.name,
						m.refused, len(m.beside))
				}
			}
		})
	}
}
