package loop

import (
	"context"
	"runtime"
)

// HoldChecks takes all places for checks, so that those that come wait until it is released.
func HoldChecks(ctx context.Context, e *Engine) (release func(), err error) {
	var held []func()
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		leave, err := e.checker.shares.Enter(ctx, "test")
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

// WaitingChecks returns how many checks wait for a place.
func WaitingChecks(e *Engine) int { return e.checker.shares.Waiting() }
