package thread

import (
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Checkpoint is a head that is listed.
type Checkpoint struct {
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
	State        *State `json:"state"`
}

func DecodeCheckpoint(data []byte) (*Checkpoint, error) {
	cp := &Checkpoint{}
	if err := Decode(data, cp); err != nil {
		return nil, err
	}
	if cp.State == nil {
		return nil, ErrUnreadable
	}
	return cp, cp.State.validate()
}

// Public is what the owner of the thread may see of it.
func (cp *Checkpoint) Public(thread string) holdfast.Checkpoint {
	return holdfast.Checkpoint{
		ID: cp.ID, ThreadID: thread, CreatedAt: cp.CreatedAt, ETag: cp.ETag, Format: max(cp.Format, 1),
		Agent: cp.State.Agent, Run: cp.State.Run(), Status: cp.State.Status(), Iteration: cp.State.Iteration,
		Message: cp.State.Leaf, Messages: cp.State.Count,
		Metadata: holdfast.CheckpointMetadata{Source: cp.Source, Step: cp.Step, Parent: cp.Parent, ParentThread: cp.ParentThread, Label: cp.Label},
	}
}

// The sources of checkpoints.
const (
	SourceInput  = "input"
	SourceLoop   = "loop"
	SourceUpdate = "update"
	SourceFork   = "fork"
)

func AddCheckpoint(c *holdfast.Commit, st *State, source string, step int, now time.Time, keep int) {
	PutCheckpoint(c, st, Checkpoint{Source: source, Step: step, Parent: st.LastCheckpoint}, now, keep)
}

// PutCheckpoint lists st in c as a checkpoint of which the origin is filled in.
func PutCheckpoint(c *holdfast.Commit, st *State, cp Checkpoint, now time.Time, keep int) *Checkpoint {
	st.takeStates()
	st.Checkpoints++
	st.LastCheckpoint = checkpointID(st.Checkpoints)
	cp.Format, cp.ID, cp.CreatedAt, cp.ETag, cp.State = Format, st.LastCheckpoint, now, c.ID, st
	c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindCheckpoint, ID: cp.ID, Data: MustJSON(cp)})
	if c.Keep == nil {
		c.Keep = map[holdfast.Kind]int{}
	}
	c.Keep[holdfast.KindCheckpoint] = keep
	return &cp
}

// checkpointID sorts as checkpoints were taken.
func checkpointID(n int) string { return fmt.Sprintf("%012d", n) }
