package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// keepsHistory reports whether more than the latest checkpoint is kept.
func (k *Keeper) keepsHistory() bool { return k.cfg.KeepCheckpoints != 1 }

// Checkpoints lists a thread's checkpoints, newest first: up to limit of those
// before the given one, and taken before the given time (zero: any).
func (k *Keeper) Checkpoints(ctx context.Context, who holdfast.Principal, thread, before string, until time.Time, limit int) ([]holdfast.Checkpoint, error) {
	t, err := k.read.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	if !k.keepsHistory() {
		return nil, errHistoryNotKept()
	}
	list := []holdfast.Checkpoint{}
	for len(list) < limit {
		page, err := k.cfg.Store.Values(ctx, t.key, holdfast.KindCheckpoint, before, limit)
		if err != nil {
			return nil, readError(err)
		}
		for _, v := range page {
			cp, err := decodeCheckpoint(v.Data)
			if err != nil {
				return nil, readError(err)
			}
			before = v.ID
			if (until.IsZero() || cp.CreatedAt.Before(until)) && len(list) < limit {
				list = append(list, cp.public(t.key.Thread))
			}
		}
		if len(page) < limit {
			break
		}
	}
	return list, nil
}

// checkpointAt reads one checkpoint.
func (k *Keeper) checkpointAt(ctx context.Context, key holdfast.ThreadKey, id string) (*checkpoint, error) {
	if !k.keepsHistory() {
		return nil, errHistoryNotKept()
	}
	data, err := k.cfg.Store.Value(ctx, key, holdfast.KindCheckpoint, id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, errCheckpointNotFound(key.Thread, id)
	}
	if err != nil {
		return nil, readError(err)
	}
	cp, err := decodeCheckpoint(data)
	if err != nil {
		return nil, readError(err)
	}
	return cp, nil
}

// Checkpoint shows the thread as it was at a checkpoint.
func (k *Keeper) Checkpoint(ctx context.Context, who holdfast.Principal, thread, id string) (*holdfast.CheckpointDetail, error) {
	t, err := k.read.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	cp, err := k.checkpointAt(ctx, t.key, id)
	if err != nil {
		return nil, err
	}
	hist, err := k.read.history(ctx, t.key, cp.State.Leaf)
	if err != nil {
		return nil, err
	}
	d := &holdfast.CheckpointDetail{Checkpoint: cp.public(thread), History: []json.RawMessage{}, Outcome: cp.State.Outcome, Code: cp.State.Code}
	d.Messages = len(hist.raw)
	for _, m := range hist.raw {
		d.History = append(d.History, m)
	}
	if d.State, err = k.read.shared(ctx, t.key, cp.State.Shared); err != nil {
		return nil, err
	}
	if d.MiddlewareState, err = k.engine.ShownStates(ctx, t.key, cp.State); err != nil {
		return nil, err
	}
	for _, c := range cp.State.Calls {
		open := holdfast.OpenCall{ID: c.ID, Tool: c.Name}
		if c.waits() {
			open.Interrupt = c.Interrupt.ID
		}
		d.OpenCalls = append(d.OpenCalls, open)
	}
	if id == t.st.LastCheckpoint {
		d.PendingWrites, err = k.read.pendingWrites(ctx, t)
	}
	return d, err
}

// State returns the thread's shared state and the states of the middleware.
func (k *Keeper) State(ctx context.Context, who holdfast.Principal, thread string) (*holdfast.ThreadState, error) {
	t, err := k.read.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	s := &holdfast.ThreadState{}
	if s.State, err = k.read.shared(ctx, t.key, t.st.Shared); err != nil {
		return nil, err
	}
	s.MiddlewareState, err = k.engine.ShownStates(ctx, t.key, t.st)
	return s, err
}

// Mark lists a manual checkpoint of a thread that does not run, and may replace its
// shared state in the same commit.
func (k *Keeper) Mark(ctx context.Context, who holdfast.Principal, id string, m holdfast.Mark) (*holdfast.Checkpoint, error) {
	if len(m.State) > 0 && !json.Valid(m.State) {
		return nil, holdfast.Errorf(holdfast.CodeInvalidInput, "state is not JSON.")
	}
	var made holdfast.Checkpoint
	_, err := k.onStill(ctx, who, id, m.ETag, func(t *thread) (*holdfast.Commit, error) {
		c, st := k.amend(t), t.st.clone()
		c.UpdatedAt = k.cfg.Now()
		if len(m.State) > 0 && string(m.State) != "null" {
			st.Shared = k.cfg.NewID("s")
			c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindBlob, ID: st.Shared, Data: m.State})
		}
		cp := k.list(c, st, checkpoint{Source: sourceUpdate, Step: st.Iteration, Parent: st.LastCheckpoint, Label: m.Label})
		made = cp.public(id)
		c.State = st.encode()
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// list lists a checkpoint of which only the origin is filled in.
func (k *Keeper) list(c *holdfast.Commit, st *state, cp checkpoint) *checkpoint {
	return putCheckpoint(c, st, cp, k.cfg.Now(), k.cfg.KeepCheckpoints)
}

func errHistoryNotKept() *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeHistoryNotKept, "This server keeps only the latest checkpoint of a thread.").
		WithHint("Operators keep more with --retention=full. A rewind or a fork by messageId works all the same.")
}
