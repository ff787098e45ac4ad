package watch

import (
	"cmp"
	"context"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Attaching to a run or a thread from a cursor, without a gap.

// After streams what of a run comes after a cursor; nil if the run has ended and nothing is
// missing. If the thread does not have the cursor's record, or the run's log, the stream is a
// new start that says why.
func (s *Streams) After(ctx context.Context, t *thread.Thread, run string, c store.Cursor, v Viewer) (*Stream, error) {
	rec, end, err := s.runOf(ctx, t, run)
	if err != nil {
		return nil, err
	}
	return s.rest(ctx, t, rec, end, c, v)
}

// Current streams a thread to a watcher that has seen its log up to the cursor: the rest of
// the current run if the cursor is in it, and otherwise the thread as it is, because no log
// has what the user said between two runs. A watcher who has seen the end is shown the thread
// too: a browser that is told that nothing is missing never comes back, and would not see the
// next run.
func (s *Streams) Current(ctx context.Context, t *thread.Thread, c store.Cursor, v Viewer) (*Stream, error) {
	if c == (store.Cursor{}) {
		return s.restart(ctx, t, "", v)
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
			return s.restart(ctx, t, "", v)
		}
		return w, err
	}
	lost, err := s.read.Lost(ctx, t, c)
	if err != nil {
		return nil, err
	}
	return s.restart(ctx, t, cmp.Or(lost, why), v)
}

// runOf reads how a run began and how it ended; no end for one that has not.
func (s *Streams) runOf(ctx context.Context, t *thread.Thread, run string) (*thread.Run, *thread.RunEnd, error) {
	rec, err := s.read.Run(ctx, t.Key, run)
	if err != nil {
		return nil, nil, err
	}
	end, err := s.read.RunEnd(ctx, t.Key, run)
	return rec, end, err
}

// rest is After for a run that was read.
func (s *Streams) rest(
	ctx context.Context, t *thread.Thread, rec *thread.Run, end *thread.RunEnd, c store.Cursor, v Viewer,
) (*Stream, error) {
	from, lost, err := s.read.RestAfter(ctx, t, rec, end, c)
	switch {
	case err != nil:
		return nil, err
	case lost != "":
		return s.restart(ctx, t, lost, v)
	case end != nil && from.Number >= end.Last:
		return nil, nil
	}
	w := s.Follow(t.Key, rec, from, v)
	if end != nil {
		w.owner = ""
	}
	return w, nil
}

// Attach streams a thread, of which maybe only the head was read, to a page that may have seen
// any part of it: snapshots, what is open, then the live log.
func (s *Streams) Attach(ctx context.Context, t *thread.Thread, v Viewer) (*Stream, error) {
	return s.restart(ctx, t, "", v)
}

// restart is Attach for a watcher that cannot go on where it was; lost is why, or empty if it
// has not been there before.
func (s *Streams) restart(ctx context.Context, t *thread.Thread, lost thread.Lost, v Viewer) (*Stream, error) {
	v.resync = lost
	if t.History != nil {
		return s.opening(ctx, t, t.History.Steps(), v)
	}
	path, err := s.path(ctx, t.Key, t.State.Leaf)
	if err != nil {
		return nil, err
	}
	return s.opening(ctx, t, path, v)
}
