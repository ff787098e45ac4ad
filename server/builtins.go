package server

import (
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
)

// withBuiltIns returns the agent's middleware, and before it what every agent has that does
// not list it itself: large results are shown in part, and a conversation that is too long
// for the model is answered with less of it. Neither has a state, so that an agent that lists
// them, or does not any more, goes on with the schema that its threads have.
func withBuiltIns(a holdfast.Agent) []holdfast.Middleware {
	lists := func(m holdfast.Middleware) bool {
		return slices.ContainsFunc(a.Middleware, func(listed holdfast.Middleware) bool { return listed.Name == m.Name })
	}
	calls := func(t holdfast.Tool) bool { return t.Spec().Name == middleware.ReadResult }
	var all []holdfast.Middleware
	if m := middleware.LargeResults(middleware.LargeResultsOptions{}); !lists(m) &&
		!slices.ContainsFunc(a.Tools, calls) {
		all = append(all, m)
	}
	if m := middleware.HistoryWindow(middleware.HistoryWindowOptions{OnOverflow: middleware.WindowShrink}); !lists(m) {
		all = append(all, m)
	}
	return append(all, a.Middleware...)
}
