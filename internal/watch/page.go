package watch

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Page returns up to limit records of a run after a cursor (zero: from its first), as a
// watcher of the run is sent them, but without waiting for more.
func (s *Streams) Page(
	ctx context.Context, t *thread.Thread, run string, after store.Cursor, limit int,
) (*agui.Page, error) {
	rec, end, err := s.runOf(ctx, t, run)
	if err != nil {
		return nil, err
	}
	from, lost, err := s.read.RestAfter(ctx, t, rec, end, after)
	if err == nil && lost != "" {
		err = errLogLost(t.Key.Thread, run, lost)
	}
	if err != nil {
		return nil, err
	}
	var records []store.Record
	if end == nil || from.Number < end.Last { // else nothing of the run comes after it
		if records, err = s.section(ctx, t.Key, rec, from, limit+1); err != nil {
			return nil, err
		}
	}
	page := &agui.Page{}
	records, page.Ended = thread.OfRun(records, from == rec.After, end)
	if len(records) > limit {
		records, page.Ended = records[:limit], false
		page.Next = records[limit-1].Cursor.String()
	}
	w := s.Follow(t.Key, rec, from, Viewer{})
	page.Frames = func(yield func([]agui.Frame, error) bool) {
		for len(records) > 0 {
			n := min(len(records), journal.Page)
			frames, _, err := w.render(ctx, records[:n])
			if records = records[n:]; !yield(frames, err) || err != nil {
				return
			}
		}
	}
	return page, nil
}

// section reads records of a run, which may be archived: it then takes the whole tree of
// messages to read them.
func (s *Streams) section(
	ctx context.Context, key store.ThreadKey, rec *thread.Run, from store.Cursor, limit int,
) ([]store.Record, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	records, err := s.read.Records(ctx, key, rec, from, limit)
	if errors.Is(err, store.ErrCursor) { // it was archived or taken away meanwhile
		return nil, errLogLost(key.Thread, rec.ID, thread.NoLog)
	}
	if err != nil {
		return nil, thread.ReadError(key, err)
	}
	return records, nil
}

// errLogLost says why the log of a run cannot be shown from a cursor on.
func errLogLost(id, run string, lost thread.Lost) *holdfast.Error {
	if lost == thread.NoLog {
		return holdfast.Errorf(codes.NotFound, "The log of run %q is not kept in this thread.", run).
			WithHint("GET /threads/{thread}/messages has what came of it. A fork has the logs of its own runs only.").
			With("threadId", id).With("runId", run).With("reason", string(lost))
	}
	return holdfast.Errorf(codes.InvalidCursor, "Thread %q does not have the record of this cursor.", id).
		WithHint("Leave after out to read the log from the run's beginning.").
		With("threadId", id).With("runId", run).With("reason", string(lost))
}
