package one // want package:"registers .*"

import "github.com/holdfast-agents/holdfast"

type State struct{ N int }

var Key = holdfast.RegisterState(holdfast.StateSpec[State]{Name: "acme.across"})
