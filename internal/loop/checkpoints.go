package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// keepsHistory reports whether more than the latest checkpoint is kept.
func (e *Engine) keepsHistory() bool { return e.cfg.KeepCheckpoints != 1 }

// Checkpoints lists a thread's checkpoints, newest first: up to limit of those
// before the given one, and taken before the given time (zero: any).
func (e *Engine) Checkpoints(ctx context.Context, who holdfast.Principal, thread, before string, until time.Time, limit int) ([]holdfast.Checkpoint, error) {
	t, err := e.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	if !e.keepsHistory() {
		return nil, errHistoryNotKept()
	}
	list := []holdfast.Checkpoint{}
	for len(list) < limit {
		page, err := e.cfg.Store.Values(ctx, t.key, holdfast.KindCheckpoint, before, limit)
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

// checkpointAt reads one checkpoint.
func (e *Engine) checkpointAt(ctx context.Context, key holdfast.ThreadKey, id string) (*checkpoint, error) {
	if !e.keepsHistory() {
		return nil, errHistoryNotKept()
	}
	data, err := e.cfg.Store.Value(ctx, key, holdfast.KindCheckpoint, id)
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
func (e *Engine) Checkpoint(ctx context.Context, who holdfast.Principal, thread, id string) (*holdfast.CheckpointDetail, error) {
	t, err := e.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	cp, err := e.checkpointAt(ctx, t.key, id)
	if err != nil {
		return nil, err
	}
	hist, err := e.loadHistory(ctx, t.key, cp.State.Leaf)
	if err != nil {
		return nil, err
	}
	d := &holdfast.CheckpointDetail{Checkpoint: cp.public(thread), History: []json.RawMessage{}, Outcome: cp.State.Outcome, Code: cp.State.Code}
	d.Messages = len(hist.raw)
	for _, m := range hist.raw {
		d.History = append(d.History, m)
	}
	if d.State, err = e.shared(ctx, t.key, cp.State.Shared); err != nil {
		return nil, err
	}
	if d.MiddlewareState, err = e.shownStates(ctx, t.key, cp.State); err != nil {
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
		d.PendingWrites, err = e.pendingWrites(ctx, t)
	}
	return d, err
}

// pendingWrites returns the finished results that no checkpoint holds yet, in the
// order in which they finished.
func (e *Engine) pendingWrites(ctx context.Context, t *thread) ([]holdfast.PendingWrite, error) {
	values, err := e.cfg.Store.Values(ctx, t.key, holdfast.KindPending, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	if len(values) == 0 {
		return nil, nil
	}
	hist, err := e.loadHistory(ctx, t.key, t.st.Leaf)
	if err != nil {
		return nil, err
	}
	var list []holdfast.PendingWrite
	for _, v := range values {
		var p pendingWrite
		if err := decodeValue(v.Data, &p); err != nil {
			return nil, readError(err)
		}
		w := holdfast.PendingWrite{
			CallID: p.CallID, Tool: p.Tool, Message: p.Message, Failed: p.Failed, Iteration: p.Iteration,
			ThreadID: t.key.Thread, CompletedAt: p.CompletedAt,
		}
		if i, ok := hist.index[p.Message]; ok {
			w.Result = hist.path[i].Content
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b holdfast.PendingWrite) int { return hist.index[a.Message] - hist.index[b.Message] })
	return list, nil
}

// State returns the thread's shared state and the states of the middleware.
func (e *Engine) State(ctx context.Context, who holdfast.Principal, thread string) (*holdfast.ThreadState, error) {
	t, err := e.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	s := &holdfast.ThreadState{}
	if s.State, err = e.shared(ctx, t.key, t.st.Shared); err != nil {
		return nil, err
	}
	s.MiddlewareState, err = e.shownStates(ctx, t.key, t.st)
	return s, err
}

// amend prepares a commit by somebody who does not own the thread, which must not
// run. The fence stays, because no record is written under a new one.
func (e *Engine) amend(t *thread) *holdfast.Commit {
	return &holdfast.Commit{
		Key: t.key, ID: e.cfg.NewID("c"), Expect: t.head.Position(), User: t.head.User,
		Fence: t.head.Fence, Process: t.head.Process, UpdatedAt: t.head.UpdatedAt,
	}
}

// onStill lets f change a thread that does not run, and commits what it returns
// (nil: nothing). The thread must have the given ETag, if there is one; else it is
// read again when it has moved meanwhile.
func (e *Engine) onStill(ctx context.Context, who holdfast.Principal, id, etag string, f func(t *thread) (*holdfast.Commit, error)) (*thread, error) {
	for range maxDecisions {
		t, err := e.tryStill(ctx, who, id, etag, f)
		var conflict *holdfast.ConflictError
		switch {
		case err == nil:
			return t, nil
		case errors.As(err, &conflict) && etag != "":
			return nil, errETag(etag, conflict.Actual.ETag)
		case errors.Is(err, holdfast.ErrConflict), errors.Is(err, holdfast.ErrFenced):
			continue
		}
		return nil, err
	}
	return nil, errKeptChanging()
}

func (e *Engine) tryStill(ctx context.Context, who holdfast.Principal, id, etag string, f func(t *thread) (*holdfast.Commit, error)) (*thread, error) {
	t, err := e.settled(ctx, who, id)
	if err != nil {
		return nil, err
	}
	m := e.lock(t.key)
	defer m.Unlock()
	if t, err = e.existing(ctx, who, id); err != nil {
		return nil, err
	}
	switch {
	case etag != "" && etag != t.head.ETag:
		return nil, errETag(etag, t.head.ETag)
	case t.st.Phase == phaseRunning:
		return nil, errStillRunning(t)
	}
	if t.hist, err = e.loadHistory(ctx, t.key, t.st.Leaf); err != nil {
		return nil, err
	}
	c, err := f(t)
	if err != nil || c == nil {
		return t, err
	}
	if err := e.commit(ctx, t.place(), c); err != nil {
		return nil, readUnlessMoved(err)
	}
	return t, nil
}

// Mark lists a manual checkpoint of a thread that does not run, and may replace its
// shared state in the same commit.
func (e *Engine) Mark(ctx context.Context, who holdfast.Principal, id string, m holdfast.Mark) (*holdfast.Checkpoint, error) {
	if len(m.State) > 0 && !json.Valid(m.State) {
		return nil, holdfast.Errorf(holdfast.CodeInvalidInput, "state is not JSON.")
	}
	var made holdfast.Checkpoint
	_, err := e.onStill(ctx, who, id, m.ETag, func(t *thread) (*holdfast.Commit, error) {
		c, st := e.amend(t), t.st.clone()
		c.UpdatedAt = e.cfg.Now()
		if len(m.State) > 0 && string(m.State) != "null" {
			st.Shared = e.cfg.NewID("s")
			c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindBlob, ID: st.Shared, Data: m.State})
		}
		cp := e.list(c, st, checkpoint{Source: sourceUpdate, Step: st.Iteration, Parent: st.LastCheckpoint, Label: m.Label})
		made = cp.public(id)
		c.State = st.encode()
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// The sources of checkpoints.
const (
	sourceInput  = "input"
	sourceLoop   = "loop"
	sourceUpdate = "update"
	sourceFork   = "fork"
)

// list lists a checkpoint of which only the origin is filled in.
func (e *Engine) list(c *holdfast.Commit, st *state, cp checkpoint) *checkpoint {
	return putCheckpoint(c, st, cp, e.cfg.Now(), e.cfg.KeepCheckpoints)
}
