package builtin // want package:"registers .*"

// Package builtin is the server's own: it may use the reserved names.

import "github.com/holdfast-agents/holdfast"

type counts struct{ N int }

var _ = holdfast.RegisterState(holdfast.StateSpec[counts]{Name: "holdfast.counts"})
