package loop

import (
	"cmp"

	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The shared state under the predictions of calls.

// stateShown returns the event that shows the state that is stored.
func stateShown(s thread.Shared) agui.Event { return agui.StateRef{ID: s.ID, State: s.State} }

// noState is what watchers of a thread without a document have.
const noState = "{}"

// places remembers which places a version of the shared state has.
type places struct {
	version string
	known   map[string]bool
}

// has reports whether a version has the object that the value at a path is a member of.
func (p *places) has(s thread.Shared, path string) bool {
	if p.known == nil || p.version != s.ID {
		p.version, p.known = s.ID, map[string]bool{}
	}
	has, known := p.known[path]
	if !known {
		has = agents.HasPlace(cmp.Or(string(s.State), noState), path)
		p.known[path] = has
	}
	return has
}
