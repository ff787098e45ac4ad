package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// counted is a log of one thread that counts how often it is read.
type counted struct {
	storekit.Waiters
	mu      sync.Mutex
	records []store.Record
	reads   int
	err     error
}

var watchedThread = store.ThreadKey{Tenant: "acme", Thread: "t"}

func (l *counted) Records(
	ctx context.Context, _ store.ThreadKey, after store.Cursor, limit int,
) ([]store.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if err := cmpErr(ctx.Err(), l.err); err != nil {
		return nil, err
	}
	if after.Number > uint64(len(l.records)) || after.Number > 0 && l.records[after.Number-1].Cursor != after {
		return nil, store.ErrCursor
	}
	rest := l.records[after.Number:]
	return slices.Clone(rest[:min(limit, len(rest))]), nil
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// commit adds records with a tag, and wakes the watchers.
func (l *counted) commit(n int, tag string) store.Cursor {
	l.mu.Lock()
	for range n {
		c := store.Cursor{Number: uint64(len(l.records) + 1), Tag: tag}
		l.records = append(l.records, store.Record{Cursor: c, Data: []byte(c.String())})
	}
	last := l.records[len(l.records)-1].Cursor
	l.mu.Unlock()
	l.Committed(watchedThread)
	return last
}

// back takes the log back to a length, as a store does that has lost its end.
func (l *counted) back(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = slices.Clone(l.records[:n])
}

func (l *counted) take() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.reads
	l.reads = 0
	return n
}

// TestTailIsShared: however many watch a thread, its log is read once for each wake-up, and
// everybody gets what was read. A burst is read in pages.
func TestTailIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &counted{}
		at := log.commit(3, "a")
		tails := NewTails(log, 1<<20)
		defer tails.Close()
		if tails.Join(watchedThread, at, false) != nil {
			t.Error("there is a reader before anybody has begun one")
		}
		var wg sync.WaitGroup
		const watchers = 1000
		for n := range watchers {
			tail := tails.Join(watchedThread, at, true)
			wg.Go(func() {
				defer tail.Leave()
				for after := at; after.Number < 3+2+Page+1; {
					records, behind, more := tail.After(after)
					if behind {
						t.Errorf("watcher %d has to read after %s itself", n, after)
						return
					}
					for _, r := range records {
						if after.Number++; r.Number != after.Number {
							t.Errorf("watcher %d gets %s for %d", n, r.Cursor, after.Number)
							return
						}
						after = r.Cursor
					}
					if len(records) == 0 {
						<-more
					}
				}
			})
		}
		synctest.Wait()
		if got := log.take(); got != 1 {
			t.Errorf("%d watchers begin with %d reads", watchers, got)
		}
		for range 2 {
			log.commit(1, "a")
			synctest.Wait()
			if got := log.take(); got != 1 {
				t.Errorf("one record costs %d reads", got)
			}
		}
		log.commit(Page+1, "a")
		wg.Wait()
		synctest.Wait()
		if got := log.take(); got != 2 {
			t.Errorf("%d records cost %d reads", Page+1, got)
		}
		if left := log.Threads(); len(left) > 0 {
			t.Errorf("nobody watches, but the reader still waits for %v", left)
		}
	})
}

// TestTailEnds: a store that does not answer ends the reader with its error, for everybody; a
// log that no longer has the reader's record ends it without one, because another watcher's
// may be there. The next watcher begins a new reader. After Close there is none.
func TestTailEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &counted{}
		at := log.commit(3, "a")
		tails := NewTails(log, 1<<20)
		end := func(tail *Tail, want error) {
			t.Helper()
			_, _, more := tail.After(at)
			log.Committed(watchedThread)
			<-more
			if _, _, more := tail.After(at); more != nil || !errors.Is(tail.Err(), want) {
				t.Errorf("the reader ends with %v, want %v", tail.Err(), want)
			}
			if next := tails.Join(watchedThread, at, false); next != nil {
				t.Error("one joins a reader that has ended")
			}
			tail.Leave()
		}
		away := errors.New("away")
		tail := tails.Join(watchedThread, at, true)
		synctest.Wait()
		log.err = away
		end(tail, away)
		log.err = nil
		tail = tails.Join(watchedThread, at, true)
		synctest.Wait()
		log.back(2)
		end(tail, nil)

		at = log.commit(1, "b")
		tail = tails.Join(watchedThread, at, true)
		synctest.Wait()
		tails.Close()
		if _, _, more := tail.After(at); more != nil || tail.Err() != nil {
			t.Errorf("after Close the reader goes on, or has failed: %v", tail.Err())
		}
		tail.Leave()
		if tails.Join(watchedThread, at, true) != nil {
			t.Error("a reader begins after Close")
		}
	})
}

// TestTailJoins: who is within what the reader keeps gets it from there; who is further back,
// or has another record of that number, reads the store; who is ahead waits.
func TestTailJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &counted{}
		at := log.commit(3, "a")
		const limit = 20 // bytes: a few records
		tails := NewTails(log, limit)
		defer tails.Close()
		tail := tails.Join(watchedThread, at, true)
		log.commit(2, "a")
		synctest.Wait()
		for _, c := range []struct {
			after  store.Cursor
			n      int
			behind bool
		}{
			{store.Cursor{Number: 2, Tag: "a"}, 0, true}, {store.Cursor{Number: 3, Tag: "b"}, 0, true},
			{store.Cursor{Number: 4, Tag: "b"}, 0, true}, {store.Cursor{Number: 5, Tag: "b"}, 0, true},
			{store.Cursor{Number: 3, Tag: "a"}, 2, false}, {store.Cursor{Number: 4, Tag: "a"}, 1, false},
			{store.Cursor{Number: 5, Tag: "a"}, 0, false}, {store.Cursor{Number: 9, Tag: "a"}, 0, false},
		} {
			records, behind, more := tail.After(c.after)
			if len(records) != c.n || behind != c.behind || more == nil {
				t.Errorf("after %s: %d records, behind %t", c.after, len(records), behind)
			}
		}
		for range 10 {
			log.commit(1, "c")
			synctest.Wait()
		}
		if _, behind, _ := tail.After(at); !behind {
			t.Error("the reader keeps everything")
		}
		first := tail.records[0].Number
		if _, behind, _ := tail.After(store.Cursor{Number: first - 1, Tag: "a"}); !behind {
			t.Error("another record before the first one is taken for it")
		}
		if got, _, _ := tail.After(store.Cursor{Number: first - 1, Tag: "c"}); len(got) != int(16-first) {
			t.Errorf("after %d come %s", first-1, fmt.Sprint(len(got)))
		}
		tail.Leave()
	})
}
