package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Checkpoints are the states that a thread can go back to. This file lists and shows them;
// marks.go takes one by hand, runs take theirs with their own commits, and travel.go goes back
// to one.

// keepsHistory reports whether more than the latest checkpoint is kept.
func (k *Keeper) keepsHistory() bool { return k.cfg.KeepCheckpoints != 1 }

// Checkpoints lists a thread's checkpoints, newest first: at most limit of those that come
// before the one with the id before (empty: all) and were taken before until (zero: any
// time).
func (k *Keeper) Checkpoints(
	ctx context.Context, who holdfast.Principal, id, before string, until time.Time, limit int,
) ([]threads.Checkpoint, error) {
	t, err := k.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	if !k.keepsHistory() {
		return nil, errHistoryNotKept()
	}
	list := []threads.Checkpoint{}
	for len(list) < limit {
		page, err := k.cfg.Store.Values(ctx, t.Key, store.KindCheckpoint, before, limit)
		if err != nil {
			return nil, thread.ReadError(t.Key, err)
		}
		for _, v := range page {
			cp, err := thread.DecodeCheckpoint(v.Data)
			if err != nil {
				return nil, thread.ReadError(t.Key, thread.AtCheckpoint(v.ID, err))
			}
			before = v.ID
			if (until.IsZero() || cp.CreatedAt.Before(until)) && len(list) < limit {
				list = append(list, cp.Public(t.Key.Thread))
			}
		}
		if len(page) < limit {
			break
		}
	}
	starts := map[string]time.Time{}
	for i := range list {
		if _, known := starts[list[i].Run]; !known {
			starts[list[i].Run] = k.runStart(ctx, t.Key, list[i].Run)
		}
		list[i].RunStartedAt = starts[list[i].Run]
	}
	return list, nil
}

// runStart returns when a run was accepted; the zero time if that cannot be read, which
// requests for the run are told.
func (k *Keeper) runStart(ctx context.Context, key store.ThreadKey, run string) time.Time {
	rec, err := k.read.Run(ctx, key, run)
	if err != nil {
		return time.Time{}
	}
	return rec.StartedAt
}

// checkpointAt reads one checkpoint. One that is not there is reported as not found.
func (k *Keeper) checkpointAt(ctx context.Context, key store.ThreadKey, id string) (*thread.Checkpoint, error) {
	if !k.keepsHistory() {
		return nil, errHistoryNotKept()
	}
	data, err := k.cfg.Store.Value(ctx, key, store.KindCheckpoint, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, thread.CheckpointNotFound(key.Thread, id)
	}
	var cp *thread.Checkpoint
	if err == nil {
		cp, err = thread.DecodeCheckpoint(data)
	}
	if err != nil {
		return nil, thread.ReadError(key, thread.AtCheckpoint(id, err))
	}
	return cp, nil
}

// Checkpoint shows the thread as it was at a checkpoint.
func (k *Keeper) Checkpoint(ctx context.Context, who holdfast.Principal, threadID, id string) (*threads.Detail, error) {
	return again(func() (*threads.Detail, error) { return k.tryCheckpoint(ctx, who, threadID, id) })
}

// tryCheckpoint is one try of Checkpoint. It returns ErrConflict if the thread has moved
// meanwhile, so that something of it is gone.
func (k *Keeper) tryCheckpoint(
	ctx context.Context, who holdfast.Principal, threadID, id string,
) (_ *threads.Detail, err error) {
	t, err := k.read.Existing(ctx, who, threadID)
	if err != nil {
		return nil, err
	}
	defer func() { err = k.orMoved(ctx, t, err) }()
	cp, err := k.checkpointAt(ctx, t.Key, id)
	if err != nil {
		return nil, err
	}
	hist, err := k.read.History(ctx, t.Key, cp.State.Leaf)
	if err != nil {
		return nil, err
	}
	d := &threads.Detail{
		Checkpoint: cp.Public(threadID),
		History:    []json.RawMessage{},
		Interrupts: cp.State.Questions(),
	}
	d.Outcome, d.Code, d.Text = cp.State.Ended()
	d.RunStartedAt = k.runStart(ctx, t.Key, d.Run)
	d.Messages = len(hist.Raw)
	for _, m := range hist.Raw {
		d.History = append(d.History, m)
	}
	if d.State, err = k.read.Shared(ctx, t.Key, cp.State.Shared); err != nil {
		return nil, err
	}
	if d.MiddlewareState, err = k.engine.ShownStates(ctx, t.Key, cp.State); err != nil {
		return nil, err
	}
	for _, c := range cp.State.Calls {
		open := threads.OpenCall{ID: c.ID, Tool: c.Name}
		if c.Waits() {
			open.Interrupt = c.Interrupt.ID
		}
		d.OpenCalls = append(d.OpenCalls, open)
	}
	if id == t.State.LastCheckpoint {
		d.PendingWrites, err = k.read.PendingWrites(ctx, t)
	}
	return d, err
}

// State returns the thread's shared state and the middleware's states.
func (k *Keeper) State(ctx context.Context, who holdfast.Principal, id string) (*threads.State, error) {
	return again(func() (*threads.State, error) {
		t, err := k.read.Existing(ctx, who, id)
		if err != nil {
			return nil, err
		}
		s := &threads.State{Version: t.State.Shared}
		if s.State, err = k.read.Shared(ctx, t.Key, t.State.Shared); err != nil {
			return nil, k.orMoved(ctx, t, err)
		}
		s.MiddlewareState, err = k.engine.ShownStates(ctx, t.Key, t.State)
		return s, k.orMoved(ctx, t, err)
	})
}

// list adds a checkpoint of st, of which only the origin is set, to the commit c.
func (k *Keeper) list(c *store.Commit, st *thread.State, cp thread.Checkpoint) *thread.Checkpoint {
	return thread.PutCheckpoint(c, st, cp, k.cfg.Now().Time(), k.cfg.KeepCheckpoints)
}

// errHistoryNotKept says that this server has no checkpoints to go back to.
func errHistoryNotKept() *holdfast.Error {
	return holdfast.Errorf(codes.HistoryNotKept, "This server keeps only the latest checkpoint of a thread.").
		WithHint("Operators keep more with --retention=full. A rewind or a fork by messageId still works.")
}
