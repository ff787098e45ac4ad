package thread

import (
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Checkpoint is a state that is listed, so that a thread can go back to it.
type Checkpoint struct {
	// Format is the format of this value.
	Format int `json:"dataFormat"`
	// ID is the checkpoint's id within its thread; ids sort in the order of time.
	ID string `json:"id"`
	// CreatedAt is when it was taken.
	CreatedAt time.Time `json:"createdAt"`
	// ETag is the id of the commit that took it.
	ETag string `json:"etag,omitempty"`
	// Source is input, loop, update or fork.
	Source string `json:"source"`
	// Step is the iteration that runs next, -1 for input.
	Step int `json:"step"`
	// Parent is the id of the checkpoint before it, in ParentThread if that is set.
	Parent string `json:"parent,omitempty"`
	// ParentThread is the thread of Parent, if that is another one.
	ParentThread string `json:"parentThread,omitempty"`
	// Label is the name that a person, a tool or a hook gave it.
	Label string `json:"label,omitempty"`
	// Mark is the id of the request that asked for it while a run was under way; empty for most.
	Mark string `json:"mark,omitempty"`
	// State is the thread's state at that moment.
	State *State `json:"state"`
}

// storedCheckpoint is the JSON of a checkpoint. As a member with a method of its own, the state
// would be written and then read once more.
type storedCheckpoint struct {
	*Checkpoint
	State storedState `json:"state"`
}

// DecodeCheckpoint reads a stored checkpoint, in this format or an earlier one. It
// returns ErrUnreadable, ErrNegative, or [store.ErrVersionTooNew].
func DecodeCheckpoint(data []byte) (*Checkpoint, error) {
	cp := &Checkpoint{}
	if err := Decode(data, cp); err != nil {
		return nil, err
	}
	if cp.State == nil {
		return nil, fmt.Errorf("%w: it has no state", ErrUnreadable)
	}
	return cp, cp.State.validate()
}

// Public returns what the thread's owner may see of the checkpoint.
func (cp *Checkpoint) Public(thread string) threads.Checkpoint {
	return threads.Checkpoint{
		ID:        cp.ID,
		ThreadID:  thread,
		CreatedAt: cp.CreatedAt,
		ETag:      cp.ETag,
		Format:    cp.Format,
		Agent:     cp.State.Agent,
		Run:       cp.State.Run(),
		Status:    cp.State.Status(),
		Iteration: cp.State.Iteration,
		Message:   cp.State.Leaf,
		Messages:  cp.State.Count,
		Metadata: threads.Metadata{
			Source:       cp.Source,
			Step:         cp.Step,
			Parent:       cp.Parent,
			ParentThread: cp.ParentThread,
			Label:        cp.Label,
		},
	}
}

// The sources of checkpoints.
const (
	SourceInput  = "input"
	SourceLoop   = "loop"
	SourceUpdate = "update"
	SourceFork   = "fork"
)

// AddCheckpoint adds a checkpoint of st, as the child of the last one and with the label that was
// asked for, to the commit c. keep is how many checkpoints the thread keeps; all if it is not
// positive.
func AddCheckpoint(c *store.Commit, st *State, source string, step int, now time.Time, keep int) {
	label := st.Marked
	st.Marked = ""
	PutCheckpoint(c, st, Checkpoint{Source: source, Step: step, Parent: st.LastCheckpoint, Label: label}, now, keep)
}

// PutCheckpoint adds a checkpoint of st to the commit c and returns it. cp says where it
// comes from; the rest of it is filled in here. keep is how many checkpoints the thread
// keeps; all if it is not positive.
func PutCheckpoint(c *store.Commit, st *State, cp Checkpoint, now time.Time, keep int) *Checkpoint {
	st.takeStates()
	st.Checkpoints++
	st.LastCheckpoint = checkpointID(st.Checkpoints)
	took(&st.Tended, st.Checkpoints, now, keep)
	cp.Format, cp.ID, cp.CreatedAt, cp.ETag, cp.State = st.Format, st.LastCheckpoint, now, c.ID, st
	c.Put = append(c.Put, store.Value{Kind: store.KindCheckpoint, ID: cp.ID,
		Data: MustJSON(storedCheckpoint{&cp, st.stored()})})
	if keep <= 0 {
		return &cp
	}
	if c.Keep == nil {
		c.Keep = map[store.Kind]int{}
	}
	c.Keep[store.KindCheckpoint] = keep
	return &cp
}

// checkpointID returns the id of the n-th checkpoint. Ids sort as checkpoints were taken.
func checkpointID(n int) string { return fmt.Sprintf("%012d", n) }
