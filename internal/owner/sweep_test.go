package owner

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/store"
)

// looked is a store that notes of which owners the threads are read.
type looked struct {
	store.Store
	read []string
}

func (l *looked) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	l.read = append(l.read, q.Group)
	return l.Store.Find(ctx, q)
}

func (l *looked) Owned(ctx context.Context) ([]store.OwnedThread, error) {
	l.read = append(l.read, "all")
	return l.Store.Owned(ctx)
}

// TestSweepReads: a sweep reads the threads of those who do not live, and its own process's if
// one may have been left; all of them only at first, and now and then.
func TestSweepReads(t *testing.T) {
	t.Parallel()
	db := &looked{Store: memstore.New()}
	for _, process := range []string{"me", "lives", "dead"} {
		c := &store.Commit{
			Key:     store.ThreadKey{Thread: process},
			ID:      process,
			Expect:  store.Position{Next: 1},
			Process: process,
		}
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if process != "dead" {
			if err := db.Announce(t.Context(), process, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
	var mu sync.Mutex
	var taken []string
	left := true
	s := &sweeper{
		store:    db,
		process:  "me",
		lease:    time.Minute,
		contact:  newContact(time.Minute),
		ctx:      t.Context(),
		draining: make(chan struct{}),
		behind:   new(atomic.Bool),
		here:     func(key store.ThreadKey) bool { return key.Thread == "me" && !left },
		succeed: func(_ context.Context, key store.ThreadKey, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, key.Thread)
			return nil
		},
	}
	sweep := func(reads, takes []string) {
		t.Helper()
		db.read, taken = nil, nil
		s.sweep()
		slices.Sort(db.read)
		slices.Sort(taken)
		if !slices.Equal(db.read, reads) || !slices.Equal(taken, takes) {
			t.Errorf("the sweep reads %q and takes %q, want %q and %q", db.read, taken, reads, takes)
		}
	}
	sweep([]string{"all"}, []string{"dead", "me"})
	sweep([]string{"dead", "me"}, []string{"dead", "me"}) // until it is here
	left = false
	sweep([]string{"dead", "me"}, []string{"dead"})
	sweep([]string{"dead"}, []string{"dead"})
	s.behind.Store(true)
	sweep([]string{"dead", "me"}, []string{"dead"})
	s.whole = clock.Moment{}
	sweep([]string{"all"}, []string{"dead"})
}
