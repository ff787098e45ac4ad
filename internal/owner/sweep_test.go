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

// owning has processes live that own a thread each, except for "dead", which has left its own.
func owning(t *testing.T, db store.Store, processes ...string) {
	t.Helper()
	for _, process := range processes {
		c := &store.Commit{
			Key:     store.ThreadKey{Thread: process},
			ID:      process,
			Expect:  store.Position{Next: 1},
			Process: process,
		}
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := db.Announce(t.Context(), process, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Retire(t.Context(), "dead"); err != nil {
		t.Fatal(err)
	}
}

// TestSweepReads: a sweep reads the threads of those who do not live, for as long as others may come
// before it, and its own process's if one may have been left; all of them only now and then.
func TestSweepReads(t *testing.T) {
	t.Parallel()
	db := &looked{Store: memstore.New()}
	owning(t, db, "me", "lives", "dead")
	var mu sync.Mutex
	var taken []string
	left := true
	s := &sweeper{
		losses: losses{
			store:   db,
			process: "me",
			lease:   time.Minute,
			contact: newContact(time.Minute),
			behind:  new(atomic.Bool),
			here:    func(key store.ThreadKey) bool { return key.Thread == "me" && !left },
			heirs:   newFleet(db, "me", time.Minute).heirs,
			forget:  func() {},
			sharing: new(atomic.Int64),
		},
		ctx:      t.Context(),
		draining: make(chan struct{}),
		share:    func(d time.Duration) time.Duration { return d },
		succeed: func(_ context.Context, key store.ThreadKey, _ string, _ func(string) bool) error {
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
	s.contact.renewed(clock.Now())
	s.behind.Store(true)
	later := func() { s.of["dead"].since = clock.Moment{} }
	sweep([]string{"dead", "me"}, []string{"dead", "me"})
	later()
	sweep([]string{"dead", "me"}, []string{"dead", "me"}) // until it is here
	left = false
	later()
	sweep([]string{"dead", "me"}, []string{"dead"})
	sweep(nil, nil) // it has just looked
	later()
	sweep([]string{"dead"}, []string{"dead"}) // it is one of the two that look after what is left
	s.behind.Store(true)
	later()
	sweep([]string{"dead", "me"}, []string{"dead"})
	s.of["dead"] = &round{n: 1, since: clock.Now()}
	sweep(nil, nil) // it is the turn of those that come first
	s.of["dead"].since = clock.Moment{}
	sweep([]string{"dead"}, []string{"dead"})
	s.renewed.Store(true)
	sweep([]string{"dead"}, []string{"dead"})
	s.whole = clock.Moment{}
	s.share = func(time.Duration) time.Duration { return -1 }
	sweep([]string{"all"}, []string{"dead"})
	s.share = func(d time.Duration) time.Duration { return d }
	s.rest = time.Hour
	s.looked = clock.Moment{}
	sweep([]string{"dead"}, []string{"dead"})
}
