package owner

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Servers that share a store need not have the same agents. Each says which ones it has, of which
// revisions, and whether it goes on with runs that have lost their server. So a server that cannot go on with a run
// leaves it to one that can, and does not end it.

// abilities are what a process says of itself.
type abilities struct {
	// Agents are the revisions of its agents, by name; empty for an agent without one.
	Agents map[string]string `json:"agents"`
	// Recovers means that it goes on with runs that have lost their server.
	Recovers bool `json:"recovers"`
	// silent means that it has said nothing, because it is of a version that does not, or nothing that
	// this one understands. It counts as one that can do everything.
	silent bool
}

// goesOnWith reports whether the process goes on with runs of the agent, with the revision unless
// that is empty.
func (a *abilities) goesOnWith(agent, revision string) bool {
	has, known := a.Agents[agent]
	return a.silent || a.Recovers && known && (revision == "" || has == revision)
}

// fleet is what this process knows of the others that have the store open.
type fleet struct {
	roster  store.Roster // nil if the store is none
	process string
	said    []byte // what this process has said; only keepLease and what comes before it use it
}

func newFleet(s store.Store, process string) *fleet {
	roster, _ := s.(store.Roster)
	return &fleet{roster: roster, process: process}
}

// say tells the others what this process can do, if that is new.
func (f *fleet) say(ctx context.Context, a *agents.Set, recovers bool) error {
	if f.roster == nil {
		return nil
	}
	about := abilities{Agents: make(map[string]string, len(a.List)), Recovers: recovers}
	for _, one := range a.List {
		about.Agents[one.Name] = one.Agent.Revision
	}
	data := thread.MustJSON(about)
	if bytes.Equal(data, f.said) {
		return nil
	}
	if err := f.roster.Describe(ctx, f.process, data); err != nil {
		return err
	}
	f.said = data
	return nil
}

// any reports whether one of the other processes that live is as wanted. leaving is the owner that a
// run has lost: it may still be among them.
func (f *fleet) any(ctx context.Context, leaving string, wanted func(*abilities) bool) (bool, error) {
	if f.roster == nil {
		return false, nil
	}
	described, err := f.roster.Described(ctx)
	if err != nil {
		return false, err
	}
	for process, about := range described {
		a := abilities{}
		a.silent = json.Unmarshal(about, &a) != nil
		if process != f.process && process != leaving && wanted(&a) {
			return true, nil
		}
	}
	return false, nil
}
