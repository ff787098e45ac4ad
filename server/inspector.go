package server

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/transfer"
	"github.com/holdfast-agents/holdfast/store"
)

// newInspector returns what shows the inside of threads.
func newInspector(s *Server) *inspector.Inspector {
	return inspector.New(inspector.Config{
		Store: s.store,
		Allow: s.guard.allow,
		Runs:  s.keeper.Runs,
		Tools: s.engine.Tools,
		Price: s.prices.priced,
		Log: func(ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor,
			limit int) (*agui.Page, error) {
			return loop.Log(ctx, s.engine, who, thread, run, after, limit)
		},
	})
}

// newTransfer returns what brings threads in and out.
func newTransfer(s *Server) *transfer.Desk {
	return transfer.New(transfer.Config{
		Store:  s.store,
		Limits: s.limits,
		Now:    s.now,
		NewID:  clock.NewIDs(s.now),
		Allow:  s.guard.allow,
		Audit: func(ctx context.Context, who holdfast.Principal, action, thread string, err error) {
			s.guard.audit(ctx, caller(who), action, thread, err)
		},
	})
}
