package redaction

import (
	"maps"

	"github.com/holdfast-agents/holdfast/state"
)

// State is what was hidden in a run.
type State struct {
	// Counts is how many times something was hidden, by the name of its pattern.
	Counts map[string]int `json:"counts,omitempty"`
	// Untold is the part of Counts that no notice has told yet.
	Untold map[string]int `json:"untold,omitempty"`
	// Where has the places of what is in Untold.
	Where []string `json:"where,omitempty"`
}

var value = state.Register(state.Spec[State]{
	Name: "holdfast.redaction", Version: 1, Scope: state.ScopeRun,
})

// added returns the sum of two counts in a new map.
func added(a, b map[string]int) map[string]int {
	sum := maps.Clone(b)
	for name, n := range a {
		sum[name] += n
	}
	return sum
}
