package owner

import (
	"context"
	"runtime"

	"github.com/holdfast-agents/holdfast"
)

// HoldChecks takes all places for checks, so that those that come wait until it is released.
func HoldChecks(ctx context.Context, e *Engine) (release func(), err error) {
	var held []func()
	for i := range max(1, runtime.GOMAXPROCS(0)/2) {
		tenant := string(rune('a' + i)) // one tenant does not get all
		leave, err := e.checker.turns.Take(ctx, holdfast.Principal{Tenant: tenant})
		if err != nil {
			return nil, err
		}
		held = append(held, leave)
	}
	return func() {
		for _, leave := range held {
			leave()
		}
	}, nil
}
