// Package holdfast has the signatures of the real one that the analysis looks at.
package holdfast

import "context"

type State interface{ StateName() string }

type Middleware struct {
	Name            string
	States          []State
	BeforeIteration func(ctx context.Context) error
}
