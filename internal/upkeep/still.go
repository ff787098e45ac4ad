package upkeep

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// amend prepares a commit to a thread that does not run, by somebody who does not own it.
// The fence stays the same, because no record is written under a new one.
func (cfg *Config) amend(t *thread.Thread) *store.Commit {
	return &store.Commit{
		Key:       t.Key,
		ID:        cfg.NewID("c"),
		Expect:    t.Head.Position(),
		User:      t.Head.User,
		Fence:     t.Head.Fence,
		Process:   t.Head.Process,
		UpdatedAt: t.Head.UpdatedAt,
	}
}

// maxTries bounds how often a thread is read again because it has moved.
const maxTries = 8

// onStill calls f with a thread that does not run, and commits what f returns, if anything.
// If etag is not empty, the thread must have it; otherwise a thread that has moved
// meanwhile is read again, so f may be called more than once.
func (k *Keeper) onStill(
	ctx context.Context, who holdfast.Principal, id, etag string, f func(t *thread.Thread) (*store.Commit, error),
) (*thread.Thread, error) {
	for range maxTries {
		t, err := k.tryStill(ctx, who, id, etag, f)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			return t, nil
		case errors.As(err, &conflict) && seen(etag, conflict.Actual.ETag):
			return nil, errETag(etag, conflict.Actual.ETag)
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrFenced):
			continue
		}
		return nil, err
	}
	return nil, thread.KeptChanging()
}

// tryStill is one try of onStill, under the thread's lock.
func (k *Keeper) tryStill(
	ctx context.Context, who holdfast.Principal, id, etag string, f func(t *thread.Thread) (*store.Commit, error),
) (*thread.Thread, error) {
	t, err := k.engine.Current(ctx, who, id)
	if err != nil {
		return nil, err
	}
	defer k.engine.Lock(t.Key)()
	if t, err = k.read.Existing(ctx, who, id); err != nil {
		return nil, err
	}
	switch {
	case seen(etag, t.Head.ETag):
		return nil, errETag(etag, t.Head.ETag)
	case t.State.Running():
		return nil, errStillRunning(id, t.State.Run())
	}
	if t.History, err = k.read.History(ctx, t.Key, t.State.Leaf); err != nil {
		return nil, k.orMoved(ctx, t, err)
	}
	c, err := f(t)
	if err != nil || c == nil {
		return t, k.orMoved(ctx, t, err)
	}
	if err := k.engine.Commit(ctx, t.Place(), c); err != nil {
		return nil, thread.ReadUnlessMoved(t.Key, err)
	}
	if c.State != nil { // the thread's size is in it
		k.cfg.Limits.Wrote(t.Place().Principal, thread.BytesOf(c))
	}
	return t, nil
}

// again calls f until it does not return ErrConflict.
func again[T any](f func() (T, error)) (T, error) {
	for range maxTries {
		v, err := f()
		if !errors.Is(err, store.ErrConflict) {
			return v, err
		}
	}
	var none T
	return none, thread.KeptChanging()
}

// orMoved returns ErrConflict instead of an error that is due to what has happened to the
// thread since it was read.
func (k *Keeper) orMoved(ctx context.Context, t *thread.Thread, err error) error {
	if err != nil && k.read.Moved(ctx, t, err) {
		return store.ErrConflict
	}
	return err
}

// seen reports whether a thread whose head has the actual ETag has changed, as far as clients see,
// for a caller who expects another one; empty for any.
func seen(expected, actual string) bool {
	return expected != "" && thread.PublicETag(expected) != thread.PublicETag(actual)
}

// errETag says that the thread has changed since the caller read it.
func errETag(expected, actual string) *holdfast.Error {
	actual = thread.PublicETag(actual)
	return holdfast.Errorf(codes.CheckpointConflict,
		"Concurrent modification detected. Expected ETag: %s, Actual ETag: %s.", expected, actual).
		WithHint("Read the thread again; nothing was changed.").With("expected", expected).With("actual", actual)
}

// errStillRunning says that the thread runs, so it cannot be changed from outside.
// run is empty if it cannot be told which run it is.
func errStillRunning(id, run string) *holdfast.Error {
	if run == "" {
		return holdfast.Errorf(codes.RunInProgress, "A run is in progress on thread %q.", id).
			WithHint("Wait for its end.").With("threadId", id)
	}
	return holdfast.Errorf(codes.RunInProgress, "Run %q is in progress on this thread.", run).
		WithHint("Wait for its end, or cancel it: POST /threads/{thread}/runs/{run}/cancel.").
		With("runId", run).With("threadId", id)
}
