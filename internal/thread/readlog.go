package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Records returns up to limit records of a run after a cursor, wherever they are.
// The cursor at which the run began is taken as it is: it is ours.
func (rd Reader) Records(ctx context.Context, key holdfast.ThreadKey, rec *Run, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
	records, err := rd.Store.Records(ctx, key, after, limit)
	// A run has at least one record, so there is always one after its beginning.
	gone := err == nil && after == rec.After && (len(records) == 0 || records[0].Number != after.Number+1)
	if !gone && !errors.Is(err, holdfast.ErrCursor) {
		return records, err
	}
	if gone {
		err = fmt.Errorf("the log of run %s is not there: %w", rec.ID, holdfast.ErrCursor)
	}
	data, archiveErr := rd.Store.Value(ctx, key, holdfast.KindLog, rec.ID)
	switch {
	case archiveErr == nil:
		return rd.archived(ctx, key, rec, data, after, limit)
	case !errors.Is(archiveErr, holdfast.ErrNotFound):
		return nil, archiveErr
	case after != rec.After:
		return nil, err
	}
	// Only the runs before this one are stored apart.
	first, err2 := rd.Store.Records(ctx, key, holdfast.Cursor{}, limit)
	if err2 != nil {
		return nil, err2
	}
	if len(first) == 0 || first[0].Number != after.Number+1 {
		return nil, err
	}
	return first, nil
}

func (rd Reader) archived(ctx context.Context, key holdfast.ThreadKey, rec *Run, data []byte, after holdfast.Cursor, limit int) ([]holdfast.Record, error) {
	a := &ArchivedLog{}
	if err := Decode(data, a); err != nil {
		return nil, err
	}
	stored, err := rd.Store.Messages(ctx, key)
	if err != nil {
		return nil, err
	}
	t, err := TextsOf(stored)
	if err != nil {
		return nil, err
	}
	if after == rec.After {
		after = holdfast.Cursor{}
	}
	records, held := a.After(after, limit, t)
	if !held {
		return nil, fmt.Errorf("thread %s, run %s, cursor %s: %w", key, rec.ID, after, holdfast.ErrCursor)
	}
	return records, nil
}

// LiveLog reads what is not archived yet.
func (rd Reader) LiveLog(ctx context.Context, t *Thread) ([]holdfast.Record, error) {
	var all []holdfast.Record
	after := holdfast.Cursor{}
	for after.Number+1 < t.Head.Next {
		page, err := rd.Store.Records(ctx, t.Key, after, 4096)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].Cursor
	}
	return all, nil
}

// Replay runs the thread's records after the boundary, which belong to an
// answer in the making, through a sequence machine and through each.
func (rd Reader) Replay(ctx context.Context, t *Thread, each func(agui.Event)) (agui.Sequencer, error) {
	var seq agui.Sequencer
	if _, err := seq.Next(agui.RunStarted{ThreadID: t.Key.Thread, RunID: t.State.Run()}); err != nil {
		return seq, err
	}
	after := t.State.Boundary
	for after.Number+1 < t.Head.Next {
		records, err := rd.Store.Records(ctx, t.Key, after, int(min(t.Head.Next-1-after.Number, 1024)))
		if err != nil {
			return seq, ReadError(err)
		}
		if len(records) == 0 {
			return seq, ReadError(errors.New("the log ends before its head says"))
		}
		for _, rec := range records {
			after = rec.Cursor
			if _, isRef := agui.RefOf(rec.Data); isRef {
				continue
			}
			ev, err := agui.DecodeEvent(rec.Data)
			if err != nil {
				return seq, ReadError(err)
			}
			if _, err := seq.Next(ev); err != nil {
				return seq, ReadError(err)
			}
			if each != nil {
				each(ev)
			}
		}
	}
	return seq, nil
}
