package loop

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
)

// amend prepares a commit by somebody who does not own the thread, which must not
// run. The fence stays, because no record is written under a new one.
func (k *Keeper) amend(t *thread) *holdfast.Commit {
	return &holdfast.Commit{
		Key: t.key, ID: k.cfg.NewID("c"), Expect: t.head.Position(), User: t.head.User,
		Fence: t.head.Fence, Process: t.head.Process, UpdatedAt: t.head.UpdatedAt,
	}
}

// onStill lets f change a thread that does not run, and commits what it returns
// (nil: nothing). The thread must have the given ETag, if there is one; else it is
// read again when it has moved meanwhile.
func (k *Keeper) onStill(ctx context.Context, who holdfast.Principal, id, etag string, f func(t *thread) (*holdfast.Commit, error)) (*thread, error) {
	for range maxDecisions {
		t, err := k.tryStill(ctx, who, id, etag, f)
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

func (k *Keeper) tryStill(ctx context.Context, who holdfast.Principal, id, etag string, f func(t *thread) (*holdfast.Commit, error)) (*thread, error) {
	t, err := k.engine.Current(ctx, who, id)
	if err != nil {
		return nil, err
	}
	defer k.engine.Lock(t.key)()
	if t, err = k.read.existing(ctx, who, id); err != nil {
		return nil, err
	}
	switch {
	case etag != "" && etag != t.head.ETag:
		return nil, errETag(etag, t.head.ETag)
	case t.st.Phase == phaseRunning:
		return nil, errStillRunning(t)
	}
	if t.hist, err = k.read.history(ctx, t.key, t.st.Leaf); err != nil {
		return nil, err
	}
	c, err := f(t)
	if err != nil || c == nil {
		return t, err
	}
	if err := k.engine.Commit(ctx, t.place(), c); err != nil {
		return nil, readUnlessMoved(err)
	}
	return t, nil
}

func errETag(expected, actual string) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeCheckpointConflict,
		"Concurrent modification detected. Expected ETag: %s, Actual ETag: %s.", expected, actual).
		WithHint("Read the thread again; nothing was changed.").With("expected", expected).With("actual", actual)
}

// errStillRunning is about what cannot be done to a thread that runs.
func errStillRunning(t *thread) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeRunInProgress, "Run %q is in progress on this thread.", t.st.Run).
		WithHint("Wait for its end, or cancel it: POST /threads/{thread}/runs/{run}/cancel.").
		With("runId", t.st.Run).With("threadId", t.key.Thread)
}
