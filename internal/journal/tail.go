package journal

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-agents/holdfast/store"
)

// A run that lives in another process is watched here through the store. However many
// watch a thread, one reader reads its log for all of them: it reads once when it is woken,
// and hands what it has read on as the feed of a run does. A reader begins where its first
// watcher is. A watcher that is further back reads what it lacks itself, until the reader
// has what comes next.

// Log is what a reader needs of the store.
type Log interface {
	Records(ctx context.Context, key store.ThreadKey, after store.Cursor, limit int) ([]store.Record, error)
	Watch(key store.ThreadKey) (wake <-chan struct{}, stop func())
}

// Page is how many records are read at a time.
const Page = 256

// Tails are the readers of a process, one for each thread that is watched.
type Tails struct {
	log   Log
	limit int

	mu      sync.Mutex
	open    map[store.ThreadKey]*Tail
	closed  bool
	readers sync.WaitGroup
}

// NewTails returns readers that each keep about limit bytes, at most twice as many. Call
// Close in the end.
func NewTails(log Log, limit int) *Tails {
	return &Tails{log: log, limit: limit, open: map[store.ThreadKey]*Tail{}}
}

// Tail is the reader of one thread. Its feed ends when nothing more can be read.
type Tail struct {
	*Feed
	tails    *Tails
	key      store.ThreadKey
	watchers int // guarded by tails.mu
	cancel   context.CancelFunc
	err      error // set before the feed ends
}

// Join returns the thread's reader, for a watcher who must call Leave. If there is none yet,
// one begins after the cursor, which must be that of a record; without begin the result is
// then nil. It is also nil after Close.
func (t *Tails) Join(key store.ThreadKey, after store.Cursor, begin bool) *Tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.open[key]
	if t.closed || tail == nil && !begin {
		return nil
	}
	if tail == nil {
		ctx, cancel := context.WithCancel(context.Background())
		tail = &Tail{Feed: newFeedAfter(after, t.limit), tails: t, key: key, cancel: cancel}
		t.open[key] = tail
		t.readers.Go(func() { tail.follow(ctx, after) })
	}
	tail.watchers++
	return tail
}

// Close ends all readers and waits for them.
func (t *Tails) Close() {
	t.mu.Lock()
	t.closed = true
	for _, tail := range t.open {
		tail.cancel()
	}
	t.mu.Unlock()
	t.readers.Wait()
}

// Leave says that a watcher no longer needs the reader, which ends with its last one.
func (t *Tail) Leave() {
	t.tails.mu.Lock()
	defer t.tails.mu.Unlock()
	if t.watchers--; t.watchers == 0 {
		t.cancel()
		t.forget()
	}
}

// Err returns why the feed has ended, which is then an error of every watcher that is up to
// date. It is nil if each can go on from its own cursor.
func (t *Tail) Err() error { return t.err }

// forget lets the next watcher begin a new reader. The caller holds tails.mu.
func (t *Tail) forget() {
	if t.tails.open[t.key] == t {
		delete(t.tails.open, t.key)
	}
}

// follow reads the log from a record on, until nobody watches or it cannot be read.
func (t *Tail) follow(ctx context.Context, at store.Cursor) {
	wake, stop := t.tails.log.Watch(t.key)
	defer stop()
	for {
		records, err := t.tails.log.Records(ctx, t.key, at, Page)
		if err != nil {
			t.end(ctx, err)
			return
		}
		if len(records) > 0 {
			at = records[len(records)-1].Cursor
			t.Append(records)
		}
		if len(records) == Page {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			t.end(ctx, nil)
			return
		}
	}
}

// end ends the feed. If the log no longer has the reader's record, it has been archived or
// has gone back, which means something else for each watcher.
func (t *Tail) end(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, store.ErrCursor) {
		t.err = err
	}
	t.tails.mu.Lock()
	t.forget()
	t.tails.mu.Unlock()
	t.Feed.End()
}
