package journal

import (
	"sync"

	"github.com/holdfast-agents/holdfast/store"
)

// Feed keeps the newest records of a run in memory, so that live watchers do not ask the
// store. It holds only what the store has acknowledged. A watcher is a cursor, not a
// queue: a slow one falls back to the store.
type Feed struct {
	limit int

	mu      sync.Mutex
	before  store.Cursor // of the record before the first one; zero if it is not known
	records []store.Record
	bytes   int
	wake    chan struct{} // closed at the next change
	ended   bool
}

// NewFeed returns an empty Feed. It keeps about limit bytes, at most twice as many.
func NewFeed(limit int) *Feed { return &Feed{limit: limit, wake: make(chan struct{})} }

// newFeedAfter returns a Feed that begins after a record.
func newFeedAfter(c store.Cursor, limit int) *Feed {
	f := NewFeed(limit)
	f.before = c
	return f
}

// Append adds records and wakes the watchers.
func (f *Feed) Append(records []store.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, records...)
	for i := range records {
		f.bytes += len(records[i].Data)
	}
	// It is trimmed by half at a time, so that trimming costs little per record.
	if f.bytes > 2*f.limit {
		drop := 0
		for f.bytes > f.limit && drop < len(f.records)-1 {
			f.bytes -= len(f.records[drop].Data)
			drop++
		}
		if drop > 0 {
			f.before = f.records[drop-1].Cursor
		}
		f.records = append(make([]store.Record, 0, 2*(len(f.records)-drop)), f.records[drop:]...)
	}
	close(f.wake)
	f.wake = make(chan struct{})
}

// End wakes the watchers for the last time: the run is no longer in this process.
func (f *Feed) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.wake)
	}
}

// At returns the record at the cursor, if the Feed has it.
func (f *Feed) At(c store.Cursor) (rec store.Record, has bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.records) == 0 || c.Number < f.records[0].Number {
		return rec, false
	}
	n := c.Number - f.records[0].Number
	if n >= uint64(len(f.records)) || f.records[n].Cursor != c {
		return rec, false
	}
	return f.records[n], true
}

// After returns the records after the cursor; the caller must not change them. behind
// means that the Feed does not reach back to the cursor, or has another record of that
// number, so the store must be asked. wake is closed when there is more; it is nil if
// nothing more will come. The records are only ever appended to, so the slice can be read
// without the lock.
func (f *Feed) After(c store.Cursor) (records []store.Record, behind bool, wake <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if wake = f.wake; f.ended {
		wake = nil
	}
	at := f.before // the Feed's record of the cursor's number
	first := f.before.Number + 1
	if len(f.records) > 0 {
		first = f.records[0].Number
	}
	switch {
	case len(f.records) == 0 && f.before == store.Cursor{}, c.Number+1 < first:
		return nil, true, wake
	case c.Number+1 > first+uint64(len(f.records)): // the Feed has yet to come so far
		return nil, false, wake
	case c.Number >= first:
		at = f.records[c.Number-first].Cursor
	}
	if at != (store.Cursor{}) && at != c {
		return nil, true, wake
	}
	n := c.Number + 1 - first
	if n == uint64(len(f.records)) {
		return nil, false, wake
	}
	return f.records[n:len(f.records):len(f.records)], false, wake
}
