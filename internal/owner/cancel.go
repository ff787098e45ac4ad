package owner

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// cancelAndWait cancels the thread's run and waits for its end. It then returns
// errDecideAgain, because the request has to be decided again.
func (e *Engine) cancelAndWait(ctx context.Context, t *thread.Thread) error {
	wake, stop := e.cfg.Store.Watch(t.Key)
	defer stop()
	if err := e.postCancel(ctx, t.Key, t.State.Run()); err != nil {
		return err
	}
	if err := e.takeovers.ensureOwnerOf(ctx, t.Key); err != nil &&
		!errors.Is(err, store.ErrNotFound) { // which may wait for its revision
		return thread.ReadError(t.Key, err)
	}
	for {
		head, err := e.cfg.Store.Head(ctx, t.Key)
		if errors.Is(err, store.ErrNotFound) || err == nil && head.Process == "" {
			return errDecideAgain
		}
		if err != nil {
			return thread.ReadError(t.Key, err)
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.closed:
			return errShuttingDown()
		}
	}
}

// postCancel leaves the request to cancel a run in the thread's inbox.
func (e *Engine) postCancel(ctx context.Context, key store.ThreadKey, run string) error {
	item := store.InboxItem{
		ID:   loop.ItemCancel + "/" + run,
		Data: thread.MustJSON(loop.Item{Type: loop.ItemCancel, Run: run}),
	}
	if err := e.cfg.Store.Post(ctx, key, item); err != nil {
		return thread.ReadError(key, err)
	}
	return nil
}

// Cancel asks the owner of a run to end it, and returns the thread as it is. If the run
// has ended, nothing changes. The request is stored first, so it outlives the owner. A
// thread or run that the user does not have is reported as not found.
func (e *Engine) Cancel(ctx context.Context, who holdfast.Principal, id, run string) (*threads.Info, error) {
	t, err := e.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	if _, err := e.cfg.Store.Value(ctx, t.Key, store.KindRun, run); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, thread.RunNotFound(id, run)
		}
		return nil, thread.ReadError(t.Key, err)
	}
	if t.State.Running() && t.State.Run() == run {
		if err := e.postCancel(ctx, t.Key, run); err != nil {
			return nil, err
		}
		if err := e.takeovers.ensureOwnerOf(ctx, t.Key); err != nil {
			return nil, thread.ReadError(t.Key, err)
		}
	}
	return t.Info(), nil
}
