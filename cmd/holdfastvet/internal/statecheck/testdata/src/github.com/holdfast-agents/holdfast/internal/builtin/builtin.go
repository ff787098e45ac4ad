package builtin // want package:"registers .*"

// Package builtin is the server's own: it may use the reserved names.

import "github.com/holdfast-agents/holdfast/state"

type counts struct{ N int }

var _ = state.Register(state.Spec[counts]{Name: "holdfast.counts"})
