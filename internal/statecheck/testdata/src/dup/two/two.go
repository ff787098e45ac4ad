package two // want package:"registers .*"

import "github.com/holdfast-agents/holdfast"

type Other struct{ N int }

var key = holdfast.RegisterState(holdfast.StateSpec[Other]{Name: "acme.across"})
