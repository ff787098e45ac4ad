package server_test

import (
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// TestSmallBodies: a server that takes small bodies, or few at a time, only needs no other bound
// to be set.
func TestSmallBodies(t *testing.T) {
	for name, change := range map[string]func(*server.Config){
		"small": func(c *server.Config) { c.MaxBody = 64 << 10 },
		"few":   func(c *server.Config) { c.MaxBodies = 8 << 20 },
	} {
		cfg := config(t)
		change(&cfg)
		s, err := server.New(cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
