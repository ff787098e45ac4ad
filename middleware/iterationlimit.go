package middleware

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// IterationLimit ends a run that has used maximum iterations since it was started or
// resumed, before it begins another one. Without a positive maximum there is no limit.
func IterationLimit(maximum int) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "holdfast.iteration_limit",
		BeforeIteration: func(_ context.Context, it *holdfast.Iteration) error {
			if maximum <= 0 || it.Granted < maximum {
				return nil
			}
			return holdfast.Errorf(codes.MaxIterations,
				"The run stopped before iteration %d: it has used the %d iterations it was granted.", it.Number,
				maximum).
				WithHint(`To grant it the same number again, POST the same threadId with `+
					`"messages": [] and a new runId.`).
				With("limit", maximum).With("iteration", it.Number)
		},
	}
}
