package two // want package:"registers .*"

import "github.com/holdfast-agents/holdfast/state"

type Other struct{ N int }

var Key = state.Register(state.Spec[Other]{Name: "acme.across"})
