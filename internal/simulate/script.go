package simulate

import (
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// The scripts by which agents act, and the histories that come of them.

// The tools, by name.
var effects = map[string]holdfast.Effect{
	"look":    holdfast.EffectPure,
	"save":    holdfast.EffectIdempotent,
	"pay":     holdfast.EffectOnce,
	"confirm": holdfast.EffectOnce, // a person is asked if a call is in doubt
	"order":   holdfast.EffectQuery,
	"leave":   holdfast.EffectOnce,       // a person is asked first
	"note":    holdfast.EffectIdempotent, // changes the shared state
	"show":    holdfast.EffectPure,       // shows an activity that changes
}

// toolNames are the names of those that every agent has, in order.
var toolNames = []string{"look", "save", "pay", "confirm", "order", "leave"}

// count is a state that a middleware keeps. Its version differs from one revision to the next.
type count struct {
	N int `json:"n"`
}

// counts are the keys of that state, by the agent's revision.
var counts = map[string]*state.Key[count]{
	"r1": countKey(1, nil),
	"r2": countKey(2, map[int]state.Migration{
		1: state.Migrate(func(c count) (count, error) { return c, nil }),
	}),
}

// countKey returns the key of a version of that state.
func countKey(version int, migrations map[int]state.Migration) *state.Key[count] {
	return state.Register(state.Spec[count]{Name: "simulate.count", Version: version, Migrations: migrations})
}

// script is what a history asks the model to do next.
type script struct {
	turn  int // how many answers there are since the user's message
	calls []string
	all   int // how many calls the history has
}

// scriptOf reads a history.
func scriptOf(messages []holdfast.Message) (s script) {
	var turns []string
	for _, m := range messages {
		switch m.Role {
		case holdfast.RoleUser:
			s.turn, turns = 0, strings.Split(strings.TrimPrefix(m.Text, "do "), "|")
		case holdfast.RoleAssistant:
			s.turn++
			s.all += len(m.Calls)
		}
	}
	if s.turn < len(turns) && turns[s.turn] != "" {
		s.calls = strings.Split(turns[s.turn], ",")
	}
	return s
}

// wellFormed returns what is wrong with a history; empty if nothing is. Each call has exactly
// one result, which follows it before the next answer or message of the user.
func wellFormed(messages []holdfast.Message) string {
	open := map[string]bool{}
	known := map[string]bool{}
	for _, m := range messages {
		switch m.Role {
		case holdfast.RoleTool:
			if !open[m.CallID] {
				return "a result of " + m.CallID + ", which is not open"
			}
			delete(open, m.CallID)
		case holdfast.RoleUser, holdfast.RoleAssistant:
			for id := range open {
				return "no result of " + id
			}
			for _, c := range m.Calls {
				if known[c.ID] {
					return "the call " + c.ID + " twice"
				}
				known[c.ID], open[c.ID] = true, true
			}
		}
	}
	for id := range open {
		return "no result of " + id
	}
	return ""
}

// idsOf returns the ids of a history.
func idsOf(messages []holdfast.Message) []string {
	var ids []string
	for _, m := range messages {
		if m.ID != "" && m.Role != holdfast.RoleSystem {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
