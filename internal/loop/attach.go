package loop

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Events streams a run after the cursor: exactly the missing rest or, if the log does not
// have the cursor's record, a new start that says so. A nil reply means that the run has
// ended and nothing is missing.
func (e *Engine) Events(ctx context.Context, who holdfast.Principal, id, run string, after store.Cursor, d agui.Dialect) (*agui.Reply, error) {
	if w := e.near(who, id, run, after); w != nil {
		w.viewer = viewer{dialect: d}
		return w.reply(ctx), nil
	}
	defer e.returns.Enter(ctx)()
	t, err := e.Current(ctx, who, id)
	if err != nil {
		return nil, err
	}
	rec, err := e.read.Run(ctx, t.Key, run)
	if err != nil {
		return nil, err
	}
	if after.Number < rec.After.Number || after == (store.Cursor{}) {
		after = rec.After
	}
	if _, err := e.read.Records(ctx, t.Key, rec, after, 1); err != nil {
		if !errors.Is(err, store.ErrCursor) {
			return nil, thread.ReadError(t.Key, err)
		}
		return e.attached(ctx, t, viewer{dialect: d, resync: true})
	}
	ended, err := e.read.RunEnd(ctx, t.Key, run)
	if err != nil || (ended != nil && after.Number >= ended.Last) {
		return nil, err
	}
	return e.streams.follow(t.Key, rec, after, viewer{dialect: d}).reply(ctx), nil
}

// Current reads the head of a thread that must exist, and makes sure that a thread that
// claims to run has a living owner, so that nobody waits for a dead one.
func (e *Engine) Current(ctx context.Context, who holdfast.Principal, id string) (*thread.Thread, error) {
	t, err := e.read.Existing(ctx, who, id)
	if err != nil || !t.State.Running() || e.local(t.Key) != nil {
		return t, err
	}
	if err := e.ensureOwnerOf(ctx, t.Key); err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	return e.read.Existing(ctx, who, id)
}

// Attach streams a thread to a page that may have seen any part of it; see streams.attach.
func (e *Engine) Attach(ctx context.Context, who holdfast.Principal, id string, d agui.Dialect) (*agui.Reply, error) {
	defer e.returns.Enter(ctx)()
	for range maxDecisions {
		t, err := e.Current(ctx, who, id)
		if err != nil {
			return nil, err
		}
		reply, err := e.attached(ctx, t, viewer{dialect: d})
		if err = e.orAgain(ctx, t, err); !errors.Is(err, errDecideAgain) {
			return reply, err
		}
	}
	return nil, thread.KeptChanging()
}

// attached is Attach for a thread of which only the head was read. Its messages are read
// while they are sent.
func (e *Engine) attached(ctx context.Context, t *thread.Thread, v viewer) (*agui.Reply, error) {
	path, err := e.streams.path(ctx, t.Key, t.State.Leaf)
	if err != nil {
		return nil, err
	}
	w, err := e.streams.attach(ctx, t, path, v)
	if err != nil {
		return nil, err
	}
	return w.reply(ctx), nil
}
