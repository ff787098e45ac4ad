package server

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/inspector"
)

// newInspector returns what shows the inside of threads.
func newInspector(s *Server) *inspector.Inspector {
	return inspector.New(inspector.Config{
		Store: s.store,
		Runs:  s.keeper.Runs,
		Tools: s.engine.Tools,
		Price: s.prices.priced,

		Indexed: func() bool { return s.keeper.Index().Complete },
	})
}

// newTransfer returns what brings threads in and out.
func newTransfer(s *Server) *audit.Desk {
	return audit.NewDesk(audit.DeskConfig{
		Store:  s.store,
		Limits: s.limits,
		Now:    s.now,
		NewID:  clock.NewIDs(s.now),

		CheckState: checkingStates(s.engine),
		Audit: func(ctx context.Context, who holdfast.Principal, action, thread string, err error) {
			s.audited.audit.note(ctx, caller(who), action, thread, err)
		},
	})
}
