package server_test

import (
	"testing"

	"github.com/holdfast-agents/holdfast/server"
)

// TestSmallBodies: a server that takes small bodies only needs no other bound to be set.
func TestSmallBodies(t *testing.T) {
	cfg := config(t)
	cfg.MaxBody = 64 << 10
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
