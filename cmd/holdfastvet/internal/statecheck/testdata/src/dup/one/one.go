package one // want package:"registers .*"

import "github.com/holdfast-agents/holdfast/state"

type State struct{ N int }

var Key = state.Register(state.Spec[State]{Name: "acme.across"})
