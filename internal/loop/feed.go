package loop

import (
	"sync"

	"github.com/holdfast-agents/holdfast"
)

// feed keeps the newest records of a run in memory, so that those who watch
// it live do not ask the store. It holds only what the store has acknowledged.
// A watcher is a cursor, not a queue: a slow one falls back to the store.
type feed struct {
	limit int

	mu      sync.Mutex
	records []holdfast.Record
	bytes   int
	wake    chan struct{} // closed at the next change
	ended   bool
}

func newFeed(limit int) *feed { return &feed{limit: limit, wake: make(chan struct{})} }

// append adds records and wakes the watchers.
func (f *feed) append(records []holdfast.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, records...)
	for i := range records {
		f.bytes += len(records[i].Data)
	}
	// Trimmed by halves, so that it costs little per record.
	if f.bytes > 2*f.limit {
		drop := 0
		for f.bytes > f.limit && drop < len(f.records)-1 {
			f.bytes -= len(f.records[drop].Data)
			drop++
		}
		f.records = append(make([]holdfast.Record, 0, 2*(len(f.records)-drop)), f.records[drop:]...)
	}
	close(f.wake)
	f.wake = make(chan struct{})
}

// end wakes the watchers for the last time: the run is not here any more.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.wake)
	}
}

// after returns the records after the cursor; the caller must not change them.
// behind means that the feed does not reach back to the cursor, so the store
// must be asked; else wake is closed when there is more. The slice is only
// appended to, so it can be read without the lock.
func (f *feed) after(c holdfast.Cursor) (records []holdfast.Record, behind bool, wake <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.records) == 0 {
		return nil, true, f.wake
	}
	first := f.records[0].Number
	if c.Number+1 < first {
		return nil, true, f.wake
	}
	n := c.Number + 1 - first
	if n >= uint64(len(f.records)) {
		return nil, false, f.wake
	}
	return f.records[n:len(f.records):len(f.records)], false, f.wake
}
