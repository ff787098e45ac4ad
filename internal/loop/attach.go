package loop

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Attaching to a run or a thread from a cursor, without a gap.

// Events streams a run after the cursor: exactly the missing rest or, if the thread does not
// have the cursor's record, a new start that says why. A nil reply means that the run has
// ended and nothing is missing. Without a run it streams the thread: see streams.current.
func (e *Engine) Events(
	ctx context.Context,
	who holdfast.Principal,
	id, run string,
	after store.Cursor,
	d agui.Dialect,
) (*agui.Reply, error) {
	if w := e.near(who, id, run, after); w != nil {
		w.viewer = viewer{dialect: d}
		return w.reply(ctx), nil
	}
	defer e.returns.Enter(ctx)()
	t, err := e.Current(ctx, who, id)
	if err != nil {
		return nil, err
	}
	v := viewer{dialect: d}
	if run == "" {
		w, err := e.streams.current(ctx, t, after, v)
		return w.reply(ctx), err
	}
	w, err := e.streams.after(ctx, t, run, after, v)
	return w.reply(ctx), err
}

// after streams what of a run comes after a cursor; nil if the run has ended and nothing is
// missing. If the thread does not have the cursor's record, or the run's log, the stream is a
// new start that says why.
func (s *streams) after(
	ctx context.Context,
	t *thread.Thread,
	run string,
	c store.Cursor,
	v viewer,
) (*watching, error) {
	rec, end, err := s.runOf(ctx, t, run)
	if err != nil {
		return nil, err
	}
	return s.rest(ctx, t, rec, end, c, v)
}

// current streams a thread to a watcher that has seen its log up to the cursor: the rest of
// the current run if the cursor is in it, and otherwise the thread as it is, because no log
// has what the user said between two runs. A watcher who has seen the end is shown the thread
// too: a browser that is told that nothing is missing never comes back, and would not see the
// next run.
func (s *streams) current(ctx context.Context, t *thread.Thread, c store.Cursor, v viewer) (*watching, error) {
	if c == (store.Cursor{}) {
		return s.anew(ctx, t, "", v)
	}
	rec, end, err := s.runOf(ctx, t, t.State.Run())
	if err != nil {
		return nil, err
	}
	why := thread.OtherRun
	switch {
	case c.Number <= t.State.Rewound:
		why = thread.Rewound
	case c.Number > rec.After.Number && (end == nil || c.Number <= end.Last):
		w, err := s.rest(ctx, t, rec, end, c, v)
		if w == nil && err == nil {
			return s.anew(ctx, t, "", v)
		}
		return w, err
	}
	lost, err := s.read.Lost(ctx, t, c)
	if err != nil {
		return nil, err
	}
	return s.anew(ctx, t, cmp.Or(lost, why), v)
}

// runOf reads how a run began and how it ended; no end for one that has not.
func (s *streams) runOf(ctx context.Context, t *thread.Thread, run string) (*thread.Run, *thread.RunEnd, error) {
	rec, err := s.read.Run(ctx, t.Key, run)
	if err != nil {
		return nil, nil, err
	}
	end, err := s.read.RunEnd(ctx, t.Key, run)
	return rec, end, err
}

// rest is after for a run that was read.
func (s *streams) rest(
	ctx context.Context,
	t *thread.Thread,
	rec *thread.Run,
	end *thread.RunEnd,
	c store.Cursor,
	v viewer,
) (*watching, error) {
	from, lost, err := s.read.RestAfter(ctx, t, rec, end, c)
	switch {
	case err != nil:
		return nil, err
	case lost != "":
		return s.anew(ctx, t, lost, v)
	case end != nil && from.Number >= end.Last:
		return nil, nil
	}
	return s.follow(t.Key, rec, from, v), nil
}

// anew attaches a watcher to a thread of which maybe only the head was read. lost is why it
// cannot go on where it was.
func (s *streams) anew(ctx context.Context, t *thread.Thread, lost thread.Lost, v viewer) (*watching, error) {
	v.resync = lost
	if t.History != nil {
		return s.attach(ctx, t, t.History.Steps(), v)
	}
	path, err := s.path(ctx, t.Key, t.State.Leaf)
	if err != nil {
		return nil, err
	}
	return s.attach(ctx, t, path, v)
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
		w, err := e.streams.anew(ctx, t, "", viewer{dialect: d})
		if err = e.orAgain(ctx, t, err); !errors.Is(err, errDecideAgain) {
			return w.reply(ctx), err
		}
	}
	return nil, thread.KeptChanging()
}
