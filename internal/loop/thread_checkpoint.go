package loop

import (
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// checkpoint is a head that is listed.
type checkpoint struct {
	Format    int       `json:"format"`
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"createdAt"`
	// ETag is the id of the commit that took it; format 1 has none.
	ETag string `json:"etag,omitempty"`
	// Source is input, loop, update or fork; Step is the iteration that runs
	// next, -1 for input.
	Source       string `json:"source"`
	Step         int    `json:"step"`
	Parent       string `json:"parent,omitempty"`
	ParentThread string `json:"parentThread,omitempty"`
	Label        string `json:"label,omitempty"`
	State        *state `json:"state"`
}

func decodeCheckpoint(data []byte) (*checkpoint, error) {
	cp := &checkpoint{}
	if err := decodeValue(data, cp); err != nil {
		return nil, err
	}
	if cp.State == nil {
		return nil, errUnreadable
	}
	return cp, cp.State.validate()
}

// public is what the owner of the thread may see of it.
func (cp *checkpoint) public(thread string) holdfast.Checkpoint {
	return holdfast.Checkpoint{
		ID: cp.ID, ThreadID: thread, CreatedAt: cp.CreatedAt, ETag: cp.ETag, Format: max(cp.Format, 1),
		Agent: cp.State.Agent, Run: cp.State.Run, Status: holdfast.ThreadStatus(cp.State.Phase), Iteration: cp.State.Iteration,
		Message: cp.State.Leaf, Messages: cp.State.Count,
		Metadata: holdfast.CheckpointMetadata{Source: cp.Source, Step: cp.Step, Parent: cp.Parent, ParentThread: cp.ParentThread, Label: cp.Label},
	}
}

// The sources of checkpoints.
const (
	sourceInput  = "input"
	sourceLoop   = "loop"
	sourceUpdate = "update"
	sourceFork   = "fork"
)

func addCheckpoint(c *holdfast.Commit, st *state, source string, step int, now time.Time, keep int) {
	putCheckpoint(c, st, checkpoint{Source: source, Step: step, Parent: st.LastCheckpoint}, now, keep)
}

// putCheckpoint lists st in c as a checkpoint of which the origin is filled in.
func putCheckpoint(c *holdfast.Commit, st *state, cp checkpoint, now time.Time, keep int) *checkpoint {
	st.takeStates()
	st.Checkpoints++
	st.LastCheckpoint = checkpointID(st.Checkpoints)
	cp.Format, cp.ID, cp.CreatedAt, cp.ETag, cp.State = Format, st.LastCheckpoint, now, c.ID, st
	c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindCheckpoint, ID: cp.ID, Data: mustJSON(cp)})
	if c.Keep == nil {
		c.Keep = map[holdfast.Kind]int{}
	}
	c.Keep[holdfast.KindCheckpoint] = keep
	return &cp
}

// checkpointID sorts as checkpoints were taken.
func checkpointID(n int) string { return fmt.Sprintf("%012d", n) }
