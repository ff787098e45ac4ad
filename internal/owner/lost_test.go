package owner

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/store"
)

// belated is a store that does not know yet, without the heads, which threads an owner has lost to
// others.
type belated struct {
	store.Store
	lost  []store.ThreadKey
	heads int // how many it has read
}

func (b *belated) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	for _, key := range b.lost {
		if q.Only(key) {
			b.heads++
		}
	}
	return b.Store.Find(ctx, q)
}

// TestTakenByOthers: of the threads that a lost owner had, each process looks once at those that others
// have taken over, however many rounds there are.
func TestTakenByOthers(t *testing.T) {
	t.Parallel()
	db := &belated{Store: memstore.New()}
	owning(t, db, "me", "dead")
	for i := range 300 {
		db.lost = append(db.lost, store.ThreadKey{Thread: fmt.Sprint(i)})
	}
	order := newHeirs("me", map[string]*abilities{"me": {silent: true}, "one": {silent: true}, "two": {silent: true}})
	s := &losses{
		store:   db,
		process: "me",
		lease:   time.Minute,
		contact: newContact(time.Minute),
		behind:  new(atomic.Bool),
		sharing: new(atomic.Int64),
		here:    func(key store.ThreadKey) bool { return key.Thread == "me" },
		heirs:   func(context.Context) (*heirs, error) { return order, nil },
		forget:  func() {},
	}
	s.contact.renewed(clock.Now())
	s.looked = clock.Now()
	for round := 1; s.of["dead"] == nil || !s.of["dead"].over; round++ {
		if r := s.of["dead"]; r != nil {
			r.since = clock.Moment{}
		}
		found, _, err := s.lost(t.Context(), false)
		if err != nil || round > len(order.all)+1 {
			t.Fatalf("round %d: %v, %v", round, found, err)
		}
	}
	if db.heads != len(db.lost) {
		t.Errorf("%d heads are read of %d threads", db.heads, len(db.lost))
	}
	if found, _, err := s.lost(t.Context(), true); len(found) != 1 || err != nil {
		t.Errorf("a look at everything finds %v, %v", found, err)
	}
	if db.heads != 2*len(db.lost) {
		t.Errorf("%d heads are read with a look at everything", db.heads)
	}
}

// TestShare: as many processes share what lost owners have left as live, or as there are threads.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ living, left, want int }{{300, 0, 300}, {300, 20, 20}, {10, 1000, 10}} {
		s := &losses{sharing: new(atomic.Int64)}
		if s.share(c.living, c.left); s.sharing.Load() != int64(c.want) {
			t.Errorf("%d processes and %d threads: %d share them, want %d", c.living, c.left, s.sharing.Load(), c.want)
		}
	}
}
