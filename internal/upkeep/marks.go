package upkeep

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Checkpoints that a person asks for.

// Mark takes a checkpoint by hand. On a thread that does not run, it may replace the shared
// state in the same commit. While a run is under way, its owner takes it, of what is stored at
// that moment.
func (k *Keeper) Mark(
	ctx context.Context, who holdfast.Principal, id string, m threads.Mark,
) (*threads.Checkpoint, error) {
	if len(m.State) > 0 && !json.Valid(m.State) {
		return nil, holdfast.Errorf(codes.InvalidInput, "state is not JSON.")
	}
	if err := thread.CheckLabel(m.Label); err != nil {
		return nil, err
	}
	changes := m.ETag != "" || len(m.State) > 0 && string(m.State) != "null"
	by := byHand{k, who, id}
	for range maxTries {
		made, err := by.still(ctx, m)
		if changes || !running(err) {
			return made, err
		}
		if made, err = by.whileItRuns(ctx, m.Label); made != nil || err != nil {
			return made, err
		}
	}
	return nil, thread.KeptChanging()
}

// byHand takes a checkpoint of a user's thread.
type byHand struct {
	k   *Keeper
	who holdfast.Principal
	id  string
}

// whileItRuns has the owner of the thread's run take a checkpoint. It returns nil if the run has
// ended before that.
func (h byHand) whileItRuns(ctx context.Context, label string) (*threads.Checkpoint, error) {
	t, err := h.k.engine.Current(ctx, h.who, h.id)
	if err != nil || !t.State.Running() {
		return nil, err
	}
	mark := &thread.CheckpointMark{ID: h.k.cfg.NewID("mark"), Label: label}
	done, err := h.k.engine.Amend(ctx, t, thread.Amendment{Mark: mark})
	if err != nil || !done {
		return nil, err
	}
	// It is among the newest, or others have taken its place already.
	newest, err := h.k.cfg.Store.Values(ctx, t.Key, store.KindCheckpoint, "", newestMarks)
	if err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	for _, v := range newest {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return nil, thread.ReadError(t.Key, thread.AtCheckpoint(v.ID, err))
		}
		if cp.Mark == mark.ID {
			made := cp.Public(h.id)
			made.RunStartedAt = h.k.runStart(ctx, t.Key, made.Run)
			return &made, nil
		}
	}
	return nil, errNotMarked(h.id)
}

// newestMarks is how many checkpoints are looked at for one that a run's owner has just taken.
const newestMarks = 32

// still takes a checkpoint of a thread that does not run.
func (h byHand) still(ctx context.Context, m threads.Mark) (*threads.Checkpoint, error) {
	stored, err := h.k.cfg.Limits.Admit(ctx, h.who, false)
	if err != nil {
		return nil, err
	}
	defer stored(false) // no thread is made
	var made threads.Checkpoint
	_, err = h.k.onStill(ctx, h.who, h.id, m.ETag, func(t *thread.Thread) (*store.Commit, error) {
		c, st := h.k.cfg.amend(t), t.State.Clone()
		c.UpdatedAt = h.k.cfg.Now().Time()
		if len(m.State) > 0 && string(m.State) != "null" {
			if err := h.k.cfg.CheckState(ctx, st.Agent, m.State); err != nil {
				return nil, err
			}
			shared, err := h.k.read.SharedVersion(ctx, t.Key, st.Shared)
			if err != nil {
				return nil, err
			}
			made := shared.Change(m.State, h.k.cfg.NewID("s"), st.Format, "", c.UpdatedAt)
			if made != nil {
				thread.Reshare(&st.Work, made.ID)
				c.Put = append(c.Put, made.Put)
			}
		}
		cp := h.k.list(c, st, thread.Checkpoint{
			Source: thread.SourceUpdate,
			Step:   st.Iteration,
			Parent: st.LastCheckpoint,
			Label:  m.Label,
		})
		made = cp.Public(h.id)
		wrote(st, c)
		thread.Save(c, st)
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	key := store.ThreadKey{Tenant: h.who.Tenant, Thread: h.id}
	h.k.counting.measureSoon(key)
	made.RunStartedAt = h.k.runStart(ctx, key, made.Run)
	return &made, nil
}

// errNotMarked says that the owner of a run has not taken a checkpoint, because its version does
// not know how, or that the checkpoint is not kept any more.
func errNotMarked(id string) *holdfast.Error {
	return holdfast.Errorf(codes.CheckpointConflict,
		"The checkpoint was asked for while a run is under way, and is not among the newest.").
		WithHint("GET /threads/{thread}/checkpoints lists those that are kept. Take it again when the run has ended.").
		With("threadId", id)
}
