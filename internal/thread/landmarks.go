package thread

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// landmarkPage is how many records of a live log are read at a time.
const landmarkPage = 4096

// Landmarks returns the records of a run that are no deltas, without what they refer to: of an
// archived log no message needs to be read for them. end is nil if the run has not ended. A
// run whose log the thread does not have has none.
func (rd Reader) Landmarks(ctx context.Context, key store.ThreadKey, rec *Run, end *RunEnd) ([]store.Record, error) {
	if !rec.HasLog(end) {
		return nil, nil
	}
	data, err := rd.Store.Value(ctx, key, store.KindLog, rec.ID)
	if errors.Is(err, store.ErrNotFound) {
		return rd.liveLandmarks(ctx, key, rec, end)
	}
	a := &ArchivedLog{}
	if err == nil {
		err = Decode(data, a)
	}
	if err != nil {
		return nil, ReadError(key, err)
	}
	return a.landmarks(), nil
}

// landmarks returns the entries that are no deltas as records.
func (a *ArchivedLog) landmarks() (list []store.Record) {
	number := a.First
	for i := range a.Entries {
		if n := &a.Entries[i]; n.Kind == "" {
			list = append(list, store.Record{Cursor: store.Cursor{Number: number, Tag: a.tag(number)}, Data: n.Data})
		}
		number += a.Entries[i].records()
	}
	return list
}

// liveLandmarks is Landmarks for a run whose log is not archived.
func (rd Reader) liveLandmarks(
	ctx context.Context, key store.ThreadKey, rec *Run, end *RunEnd,
) (list []store.Record, err error) {
	for after := rec.After; ; {
		page, err := rd.Records(ctx, key, rec, after, landmarkPage)
		if errors.Is(err, store.ErrCursor) {
			return list, nil // it was taken away
		}
		if err != nil {
			return nil, ReadError(key, err)
		}
		more := len(page) == landmarkPage
		page, over := OfRun(page, after == rec.After, end)
		for i := range page {
			if after = page[i].Cursor; !agui.TypeOf(page[i].Data).IsDelta() {
				list = append(list, page[i])
			}
		}
		if over || !more {
			return list, nil
		}
	}
}

// OfRun returns those of the records, which follow one another in the thread's log, that
// belong to the run, and whether they end it. first means that they begin with its first.
func OfRun(records []store.Record, first bool, end *RunEnd) ([]store.Record, bool) {
	for i := range records {
		kind := agui.TypeOf(records[i].Data)
		switch {
		case end != nil && records[i].Number > end.Last, kind == agui.TypeRunStarted && (i > 0 || !first):
			return records[:i], true
		case kind == agui.TypeRunFinished, kind == agui.TypeRunError:
			return records[:i+1], true
		}
	}
	return records, end != nil && (len(records) == 0 || records[len(records)-1].Number >= end.Last)
}
