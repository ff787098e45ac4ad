package thread

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Amendment is what a request has the owner of a run change in its thread, besides the run.
type Amendment struct {
	// Description, if set, is how the thread is to be listed.
	Description *threads.Description `json:"description,omitempty"`
	// Mark, if set, asks for a checkpoint of what is stored.
	Mark *CheckpointMark `json:"mark,omitempty"`
	// State, if set, changes the shared state. The run makes that change with those of its tools.
	State *StatePatch `json:"state,omitempty"`
}

// CheckpointMark asks for a checkpoint.
type CheckpointMark struct {
	// ID is the id by which requests name the checkpoint.
	ID string `json:"id"`
	// Label is the checkpoint's; it may be empty.
	Label string `json:"label,omitempty"`
}

// Notice returns what the run's stream says of it: a CUSTOM event of that name and value. The name
// is empty if nothing is changed.
func (a *Amendment) Notice() (name string, value json.RawMessage) {
	switch {
	case a.Description != nil:
		return "holdfast.described", MustJSON(a.Description)
	case a.Mark != nil:
		return "holdfast.marked", MustJSON(map[string]string{"label": a.Mark.Label})
	}
	return "", nil
}

// Amend makes the change in the state, and in the commit that stores that. keep is how many
// checkpoints the thread keeps; all if it is not positive.
func (a *Amendment) Amend(c *store.Commit, st *State, now time.Time, keep int) {
	if a.Description != nil {
		st.Describe(*a.Description, nil)
	}
	if a.Mark != nil {
		cp := Checkpoint{
			Source: SourceUpdate,
			Step:   st.Iteration,
			Parent: st.LastCheckpoint,
			Label:  a.Mark.Label,
			Mark:   a.Mark.ID,
		}
		PutCheckpoint(c, st, cp, now, keep)
	}
}

// Reshare makes id the version of the shared state while no run is under way, so that no stream shows it.
func Reshare(w *Work, id string) {
	if w.StateShown == "" && id != w.Shared {
		w.StateShown = cmp.Or(w.Shared, NoState)
	}
	w.Shared = id
}
