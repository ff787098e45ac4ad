package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

// Whether a watcher who names the last record that it has seen can go on from there. It can
// if the thread has that record: the number says where it stands, and the tag that it is the
// same one. Otherwise there is a reason, which the watcher is told with the new start that it
// gets. Nothing but the thread's own log is looked at, so the answer says nothing about any
// other thread.

// Lost is why a stream cannot go on after a cursor; empty if it can. Watchers read it in
// metadata.holdfast.resyncReason.
type Lost string

// The reasons why a stream starts over.
const (
	// BeyondEnd: the thread's log is not that long.
	BeyondEnd Lost = "beyond_end"
	// OtherRecord: the record of that number is another one.
	OtherRecord Lost = "other_record"
	// NoLog: the thread does not keep the log that had the record, or that of the run.
	NoLog Lost = "no_log"
	// OtherRun: the record belongs to another run than the thread's current one.
	OtherRun Lost = "other_run"
	// Rewound: the thread was rewound since the record was written.
	Rewound Lost = "rewound"
)

// HasLog reports whether the run has a log in this thread; end is nil if it has not ended. A
// fork has the runs of the thread that it was made of, but not their logs.
func (rec *Run) HasLog(end *RunEnd) bool { return end == nil || end.Last > rec.After.Number }

// RestAfter returns where the rest of a run begins for a watcher that has seen the thread's
// log up to the cursor: at the run's beginning if the cursor is before it. The zero cursor is
// the run's beginning. end is nil if the run has not ended.
func (rd Reader) RestAfter(
	ctx context.Context, t *Thread, rec *Run, end *RunEnd, c store.Cursor,
) (from store.Cursor, lost Lost, err error) {
	if !rec.HasLog(end) {
		return c, NoLog, nil
	}
	from = c
	if c.Number <= rec.After.Number {
		if c != rec.After {
			if lost, err = rd.Lost(ctx, t, c); lost != "" || err != nil {
				return c, lost, err
			}
		}
		from = rec.After
	}
	_, err = rd.Records(ctx, t.Key, rec, from, 1)
	if err == nil {
		return from, "", nil
	}
	if !errors.Is(err, store.ErrCursor) {
		return c, "", ReadError(t.Key, err)
	}
	lost, err = rd.Lost(ctx, t, from)
	if lost == "" && err == nil && (end == nil || from.Number < end.Last) {
		lost = NoLog
	}
	return from, lost, err
}

// Lost reports why the thread does not have the record of a cursor; "" if it has it, in its
// live log or in an archived one. The zero cursor needs no record.
func (rd Reader) Lost(ctx context.Context, t *Thread, c store.Cursor) (Lost, error) {
	switch {
	case c == store.Cursor{}:
		return "", nil
	case c.Number >= t.Head.Next:
		return BeyondEnd, nil
	}
	_, err := rd.Store.Records(ctx, t.Key, c, 0)
	if err == nil || !errors.Is(err, store.ErrCursor) {
		return "", readErrorOf(t.Key, err)
	}
	first, err := rd.Store.Records(ctx, t.Key, store.Cursor{}, 1)
	if err != nil {
		return "", ReadError(t.Key, err)
	}
	if len(first) > 0 && first[0].Number <= c.Number {
		return OtherRecord, nil
	}
	lost, err := rd.lostInArchive(ctx, t.Key, c)
	return lost, readErrorOf(t.Key, err)
}

// lostInArchive is Lost for a record that is not in the live log any more.
func (rd Reader) lostInArchive(ctx context.Context, key store.ThreadKey, c store.Cursor) (Lost, error) {
	run, err := rd.runOfRecord(ctx, key, c.Number)
	if err != nil {
		return "", err
	}
	if run == "" {
		return NoLog, nil
	}
	data, err := rd.Store.Value(ctx, key, store.KindLog, run)
	if errors.Is(err, store.ErrNotFound) {
		return NoLog, nil
	}
	if err != nil {
		return "", err
	}
	a := &ArchivedLog{}
	if err := Decode(data, a); err != nil {
		return "", fmt.Errorf("the log of run %s: %w", run, err)
	}
	switch {
	case c.Number < a.First || c.Number >= a.First+a.Count():
		return NoLog, nil
	case a.tag(c.Number) != c.Tag:
		return OtherRecord, nil
	}
	return "", nil
}

// runOfRecord returns the id of the run that has ended and wrote the record of that number;
// "" if there is none.
func (rd Reader) runOfRecord(ctx context.Context, key store.ThreadKey, number uint64) (run string, err error) {
	ends, err := rd.Store.Values(ctx, key, store.KindOutcome, "", 0)
	if err != nil {
		return "", err
	}
	nearest := uint64(0)
	for _, v := range ends {
		var end RunEnd
		if err := Decode(v.Data, &end); err != nil {
			return "", fmt.Errorf("the end of run %s: %w", v.ID, err)
		}
		if end.Last >= number && (nearest == 0 || end.Last < nearest) {
			run, nearest = v.ID, end.Last
		}
	}
	return run, nil
}

// readErrorOf is ReadError that leaves nil as it is.
func readErrorOf(key store.ThreadKey, err error) error {
	if err == nil {
		return nil
	}
	return ReadError(key, err)
}
