package owner

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/watch"
	"github.com/holdfast-agents/holdfast/store"
)

// Attaching to a run or a thread from a cursor, without a gap.

// Events streams a run after the cursor: exactly the missing rest or, if the thread does not
// have the cursor's record, a new start that says why. A nil reply means that the run has
// ended and nothing is missing. Without a run it streams the thread: see watch.Streams.Current.
func (e *Engine) Events(
	ctx context.Context, who holdfast.Principal, id, run string, after store.Cursor, d agui.Dialect,
) (*agui.Reply, error) {
	if w := e.near(who, id, run, after); w != nil {
		w.Viewer = watch.Viewer{Dialect: d}
		return w.Reply(ctx), nil
	}
	leave, err := e.returns.Take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, err := e.Current(ctx, who, id)
	if err != nil {
		return nil, err
	}
	v := watch.Viewer{Dialect: d}
	if run == "" {
		w, err := e.streams.Current(ctx, t, after, v)
		return w.Reply(ctx), err
	}
	w, err := e.streams.After(ctx, t, run, after, v)
	return w.Reply(ctx), err
}

// Current reads the head of a thread that must exist, and makes sure that a thread that
// claims to run has a living owner, so that nobody waits for a dead one.
func (e *Engine) Current(ctx context.Context, who holdfast.Principal, id string) (*thread.Thread, error) {
	t, err := e.read.Existing(ctx, who, id)
	if err != nil || !t.State.Running() || e.residents.local(t.Key) != nil {
		return t, err
	}
	if err := e.takeovers.ensureOwnerOf(ctx, t.Key); err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	return e.read.Existing(ctx, who, id)
}

// Attach streams a thread to a page that may have seen any part of it.
func (e *Engine) Attach(ctx context.Context, who holdfast.Principal, id string, d agui.Dialect) (*agui.Reply, error) {
	leave, err := e.returns.Take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer leave()
	for range maxDecisions {
		t, err := e.Current(ctx, who, id)
		if err != nil {
			return nil, err
		}
		w, err := e.streams.Attach(ctx, t, watch.Viewer{Dialect: d})
		if err = e.decider.orAgain(ctx, t, err); !errors.Is(err, errDecideAgain) {
			return w.Reply(ctx), err
		}
	}
	return nil, thread.KeptChanging()
}

// Joins are the streams of pages that know a run, and not where they are in it.
type Joins struct{ Engine *Engine }

// Join streams a run after the cursor to a page that may have any part of its thread. Without a cursor, it shows
// the messages of the thread as shown makes them, and then the answer under way from its start. A nil reply means
// that the run has ended and nothing is missing.
func (j Joins) Join(
	ctx context.Context, who holdfast.Principal, id, run string, after store.Cursor, d agui.Dialect, shown agui.Shown,
) (*agui.Reply, error) {
	e := j.Engine
	leave, err := e.returns.Take(ctx, who)
	if err != nil {
		return nil, err
	}
	defer leave()
	for range maxDecisions {
		t, err := e.Current(ctx, who, id)
		if err != nil {
			return nil, err
		}
		attach := e.streams.Attach
		if after != (store.Cursor{}) || t.State.Run() != run {
			attach = func(ctx context.Context, t *thread.Thread, v watch.Viewer) (*watch.Stream, error) {
				return e.streams.After(ctx, t, run, after, v)
			}
		}
		w, err := attach(ctx, t, watch.Viewer{Dialect: d, Shown: shown})
		if err = e.decider.orAgain(ctx, t, err); !errors.Is(err, errDecideAgain) {
			return w.Reply(ctx), err
		}
	}
	return nil, thread.KeptChanging()
}

// Log returns up to limit records of a run after a cursor (zero: from its first), as a
// watcher of the run is sent them, but without waiting for more.
func Log(
	ctx context.Context, e *Engine, who holdfast.Principal, id, run string, after store.Cursor, limit int,
) (*agui.Page, error) {
	t, err := e.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return e.streams.Page(ctx, t, run, after, limit)
}

// near returns a stream of a run that lives in this process, after a record that the run
// still has in memory; nil if the store must be asked. Most clients that come back have lost
// only the connection, and many may come back at once: what they lack costs no command.
func (e *Engine) near(who holdfast.Principal, id, run string, after store.Cursor) *watch.Stream {
	key := store.ThreadKey{Tenant: who.Tenant, Thread: id}
	r := e.residents.local(key)
	if r == nil || r.start.Rec.ID != run || r.start.Rec.User != who.User {
		return nil
	}
	rec, has := r.feed.At(after)
	if !has {
		return nil
	}
	switch agui.TypeOf(rec.Data) {
	case agui.TypeRunFinished, agui.TypeRunError: // nothing follows
		return nil
	}
	return e.streams.Follow(key, r.start.Rec, after, watch.Viewer{})
}
