package right

import "github.com/holdfast-agents/holdfast"

type older struct{ N int }

// A test of a deployment registers the state as it was.
var _ = holdfast.RegisterState(holdfast.StateSpec[older]{Name: "acme.right"})

var _ = holdfast.RegisterState(holdfast.StateSpec[*older]{Name: "Bad"})
