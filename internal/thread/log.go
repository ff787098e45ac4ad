package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast/store"
)

// A run's log is what watchers of the run read. While it is fresh, its records are in
// the thread's live log. Some time after the run's end, upkeep stores it apart as one
// value, without what the message table holds already: of the deltas of a message only
// the lengths stay, so that a reader whose cursor lies between two of them gets the rest
// of the text; of a large tool result only the id of its message stays. This file finds
// the records of a run wherever they are.

// Records returns up to limit records of a run after a cursor, from the live log or from
// the archive. after may be rec.After, the position before the run's first record, which
// needs no record of its own. A cursor that is nowhere is [store.ErrCursor].
func (rd Reader) Records(
	ctx context.Context, key store.ThreadKey, rec *Run, after store.Cursor, limit int,
) ([]store.Record, error) {
	records, err := rd.Store.Records(ctx, key, after, limit)
	// A run has at least one record, so there is always one after its beginning.
	gone := err == nil && after == rec.After && (len(records) == 0 || records[0].Number != after.Number+1)
	if !gone && !errors.Is(err, store.ErrCursor) {
		return records, err
	}
	if gone {
		err = fmt.Errorf("the log of run %s is not there: %w", rec.ID, store.ErrCursor)
	}
	data, archiveErr := rd.Store.Value(ctx, key, store.KindLog, rec.ID)
	switch {
	case archiveErr == nil:
		return rd.archived(ctx, key, rec, data, after, limit)
	case !errors.Is(archiveErr, store.ErrNotFound):
		return nil, archiveErr
	case after != rec.After:
		return nil, err
	}
	// Only the runs before this one are stored apart.
	first, err2 := rd.Store.Records(ctx, key, store.Cursor{}, limit)
	if err2 != nil {
		return nil, err2
	}
	if len(first) == 0 || first[0].Number != after.Number+1 {
		return nil, err
	}
	return first, nil
}

// archived returns records of a run from data, its archived log.
func (rd Reader) archived(
	ctx context.Context, key store.ThreadKey, rec *Run, data []byte, after store.Cursor, limit int,
) ([]store.Record, error) {
	a := &ArchivedLog{}
	if err := Decode(data, a); err != nil {
		return nil, err
	}
	t, err := rd.textsFor(ctx, key, a)
	if err != nil {
		return nil, err
	}
	if after == rec.After {
		after = store.Cursor{}
	}
	records, held := a.After(after, limit, t)
	if !held {
		return nil, fmt.Errorf("thread %s, run %s, cursor %s: %w", key, rec.ID, after, store.ErrCursor)
	}
	return records, nil
}

// LiveLog returns all records of the thread that are not archived.
func (rd Reader) LiveLog(ctx context.Context, t *Thread) ([]store.Record, error) {
	var all []store.Record
	after := store.Cursor{}
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

// TextsIn reads the texts of the messages that the records of a log tell of.
func (rd Reader) TextsIn(ctx context.Context, key store.ThreadKey, records []store.Record) (*Texts, error) {
	var ids []string
	for i := range records {
		ids = appendMessage(ids, records[i].Data)
	}
	stored, _, err := rd.told(ctx, key, ids)
	if err != nil {
		return nil, err
	}
	return TextsOf(those(stored, ids))
}

// textsFor reads the texts of an archive.
func (rd Reader) textsFor(ctx context.Context, key store.ThreadKey, a *ArchivedLog) (*Texts, error) {
	stored, all, err := rd.told(ctx, key, a.messages())
	if err != nil {
		return nil, err
	}
	t, err := a.Texts(stored)
	if err != nil || all || a.whole(t) {
		return t, err
	}
	if stored, err = rd.Store.Messages(ctx, key); err != nil {
		return nil, err
	}
	return a.Texts(stored)
}

// told reads the messages with the ids, of which some may not be there: of answers that were taken
// back, or have been pruned since. Then it returns all messages of the thread.
func (rd Reader) told(
	ctx context.Context, key store.ThreadKey, ids []string,
) (stored []store.Message, all bool, err error) {
	slices.Sort(ids)
	stored, err = rd.Store.MessagesOf(ctx, key, slices.Compact(ids))
	if errors.Is(err, store.ErrNotFound) {
		stored, err = rd.Store.Messages(ctx, key)
		all = true
	}
	return stored, all, err
}
