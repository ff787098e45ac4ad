package mcp

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Waiting for a connection: a call waits for one that was lost only now, and a call that is
// gone on with in this process for the first list of tools.

// session returns the connection to use. It waits for one if there was none yet, or the last
// one was lost only now. A server that is down for longer fails its calls at once.
func (s *Server) session(ctx context.Context) (*session, error) {
	for {
		s.mu.Lock()
		x, changed, hope, problem := s.current, s.changed, s.hope, s.problem
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return nil, errClosed
		case x != nil && !x.dead():
			return x, nil
		case x != nil: // the manager is about to notice
			hope = time.Now().Add(settled)
		}
		switch err := s.waitFor(ctx, changed, hope); {
		case errors.Is(err, errNotYet):
			return nil, cmpError(problem, err)
		case err != nil:
			return nil, err
		}
	}
}

// errNotYet is the error of a server that could not be connected to in time.
var errNotYet = errors.New("it does not answer")

// waitFor waits until changed is closed. It returns an error if that does not happen before
// the hope ends.
func (s *Server) waitFor(ctx context.Context, changed <-chan struct{}, hope time.Time) error {
	t := time.NewTimer(time.Until(hope))
	defer t.Stop()
	select {
	case <-changed:
		return nil
	case <-t.C:
		return errNotYet
	case <-s.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AwaitTool waits until the server's tools were listed for the first time, if a tool of
// this name can be one of them, but no longer than ConnectTimeout after [Open]. Whatever
// goes on with a call in another process waits like that for the call's tool.
func (s *Server) AwaitTool(ctx context.Context, name string) error {
	for strings.HasPrefix(name, s.o.Name+"_") {
		s.mu.Lock()
		changed, hope, problem := s.changed, s.hope, s.problem
		s.mu.Unlock()
		if s.tools.Load().read {
			break
		}
		switch err := s.waitFor(ctx, changed, hope); {
		case errors.Is(err, errNotYet):
			return cmpError(problem, err)
		case err != nil:
			return err
		}
	}
	return nil
}
