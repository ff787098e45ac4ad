package owner

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/turns"
)

// The time to find out whether JSON from outside fits a schema is in the hands of the authors
// of the two, up to a budget of steps (package schema). So it is never found out under a lock
// or in one of the places for decisions; and it is heavy work, for which tenants and users take
// turns, so that one who has many made does not keep the others waiting.

// checker makes checks.
type checker struct{ turns *turns.Turns }

// openChecks is the error of a decision that depends on checks.
type openChecks struct{ checks []decide.Check }

// Error implements error. Nobody reads it: the checks are made instead.
func (*openChecks) Error() string { return "something has to be checked first" }

// find makes checks for a caller, and notes what came of them. The error is that of ctx.
func (c *checker) find(ctx context.Context, who holdfast.Principal, checks []decide.Check, v decide.Verdicts) error {
	leave, err := c.turns.Take(ctx, who)
	if err != nil {
		return err
	}
	defer leave()
	for _, check := range checks {
		if err := v.Find(ctx, check); err != nil {
			return err
		}
	}
	return nil
}
