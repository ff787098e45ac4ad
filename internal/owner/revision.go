package owner

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/pin"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A run has its agent of one revision for as long as it is in one process. A process that
// takes it over may have another one: either the run adopts that, or it is pinned, and waits
// for a process with its own (package pin). A process without the agent, or that does not
// recover, leaves the run to one that can go on with it (fleet.go).

// The choices of Config.OnRevision and of an agent.
const (
	Adopt = "adopt" // a run that is taken over goes on with the revision that there is
	Pin   = "pin"   // it waits for its own
)

// successor is with what a run goes on here, or why it does not.
type successor struct {
	agent   *agents.Agent // nil if there is none of its name
	agents  *agents.Set   // those of the agent, in use until the caller drops them
	verdict pin.Verdict
	others  bool // another process can go on with it
}

// successors finds out with what this process goes on with runs that have lost their owner.
type successors struct {
	*house
	pins *pin.Keeper
	// running returns the agent of that name and revision of a run in this process, with its
	// agents in use; nil if there is none.
	running func(name, revision string) *agents.Agent
}

// of returns with what this process goes on with the thread's run. The caller drops the
// agents, also after an error, which is the store's.
func (h *successors) of(ctx context.Context, t *thread.Thread) (s successor, err error) {
	s.agents = h.Take()
	s.agent, _ = s.agents.OfThread(t)
	if !h.cfg.Recover {
		// It ends the run, unless there is one that goes on with runs.
		s.others, err = h.fleet.any(ctx, t.Head.Process, func(a *abilities) bool { return a.silent || a.Recovers })
		if s.others {
			s.verdict = pin.Wait
		}
		return s, err
	}
	mode := h.cfg.OnRevision
	if s.agent != nil {
		mode = cmp.Or(s.agent.OnRevision, mode)
	}
	if s.agent != nil && mode != Pin {
		return s, nil
	}
	began := h.revision(ctx, t)
	if s.agent != nil && (began == "" || s.agent.Revision == began) {
		return s, nil
	}
	if older := h.running(t.State.Agent, began); older != nil {
		s.agents.Drop()
		s.agent, s.agents = older, older.Of
		return s, nil
	}
	wanted := began
	if s.agent == nil { // one that has the agent knows whether another revision will do
		wanted = ""
	}
	s.others, err = h.fleet.any(ctx, t.Head.Process, func(a *abilities) bool {
		return a.goesOnWith(t.State.Agent, wanted)
	})
	if err != nil {
		return s, err
	}
	s.verdict, err = h.pins.Look(ctx, t, began, s.others)
	if s.verdict == pin.Cancelled && s.agent == nil && s.others {
		s.verdict = pin.Wait // that one ends it as its user wants
	}
	return s, err
}

// revision returns the revision that the thread's run is with; empty if it has none, or if
// that cannot be read: the takeover reads it again, and knows what the error means.
func (h *successors) revision(ctx context.Context, t *thread.Thread) string {
	if w := t.State.Waiting; w != nil {
		return w.Revision
	}
	rec, err := h.read.Run(ctx, t.Key, t.State.Run())
	if err != nil {
		return ""
	}
	return rec.Revision
}

// newKeeper returns the keeper of the runs that wait for their revision.
func newKeeper(h *house) *pin.Keeper {
	return pin.New(pin.Config{
		Store:   h.cfg.Store,
		Process: h.process,
		Grace:   h.cfg.Lease,
		Timeout: h.cfg.PinTimeout,
		Commit:  h.Commit,
		Now:     h.cfg.Now,
		NewID:   h.cfg.NewID,
		Log:     h.cfg.Log,
		Cancels: func(it store.InboxItem, run string) bool {
			var in loop.Item
			return json.Unmarshal(it.Data, &in) == nil && in.Type == loop.ItemCancel && in.Run == run
		},
	})
}
