package dup // want package:"registers acme.same acme.same"

import "github.com/holdfast-agents/holdfast/state"

type first struct{ N int }

type second struct{ N int }

var (
	_ = state.Register(state.Spec[first]{Name: "acme.same"})
	_ = state.Register(state.Spec[second]{Name: "acme.same"}) // want `HF003: the name "acme.same" is registered twice: here with second, and with first \(dup, dup.go:10:6\)`
)
