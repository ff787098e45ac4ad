package dup // want package:"registers acme.same acme.same"

import "github.com/holdfast-agents/holdfast"

type first struct{ N int }

type second struct{ N int }

var (
	_ = holdfast.RegisterState(holdfast.StateSpec[first]{Name: "acme.same"})
	_ = holdfast.RegisterState(holdfast.StateSpec[second]{Name: "acme.same"}) // want `HF003: the name "acme.same" is registered twice: here with second, and with first \(dup, dup.go:10:6\)`
)
