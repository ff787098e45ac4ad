package server

import (
	"context"
	"testing"
)

// TestWaitForTools: a tool that ends as soon as its run is cut off is not one that ignores
// its context, although the time of the shutdown is over then.
func TestWaitForTools(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	s := &Server{}
	s.tools.Go(func() { <-over.Done() })
	cancel()
	if err := s.waitForTools(over); err != nil {
		t.Error(err)
	}
	s.tools.Add(1)
	defer s.tools.Done()
	if err := s.waitForTools(over); err == nil {
		t.Error("a tool that never ends is not noticed")
	}
}
