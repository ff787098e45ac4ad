package top // want package:"registers acme.across acme.across acme.across"

// Package top imports one package that has said so already, and adds one more.

import (
	_ "dup/both"
	_ "dup/one"

	"github.com/holdfast-agents/holdfast/state"
)

type mine struct{ N int }

var _ = state.Register(state.Spec[mine]{Name: "acme.across"}) // want `HF003: the name "acme.across" is registered twice: here with mine, and with State \(dup/one`
