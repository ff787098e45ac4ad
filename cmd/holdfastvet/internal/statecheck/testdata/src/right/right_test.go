package right

import "github.com/holdfast-agents/holdfast/state"

type older struct{ N int }

// A test of a deployment registers the state as it was.
var _ = state.Register(state.Spec[older]{Name: "acme.right"})

var _ = state.Register(state.Spec[*older]{Name: "Bad"})
