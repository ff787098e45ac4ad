package redaction

import (
	"maps"

	"github.com/holdfast-agents/holdfast"
)

// State is what was hidden in a run: how many times, by name.
type State struct {
	Counts map[string]int `json:"counts,omitempty"`
	// Untold counts what no notice has told yet, and Where has the places.
	Untold map[string]int `json:"untold,omitempty"`
	Where  []string       `json:"where,omitempty"`
}

var state = holdfast.RegisterState(holdfast.StateSpec[State]{
	Name: "holdfast.redaction", Version: 1, Scope: holdfast.ScopeRun,
})

// added returns the sum of two counts in a new map.
func added(a, b map[string]int) map[string]int {
	sum := maps.Clone(b)
	for name, n := range a {
		sum[name] += n
	}
	return sum
}
