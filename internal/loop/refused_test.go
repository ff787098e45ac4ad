package loop_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// full is a store that can be read, and refuses writes while it is on.
type full struct {
	store.Store
	on      atomic.Bool
	commits atomic.Int32 // that were tried
}

func (f *full) refuse() error {
	if f.on.Load() {
		return fmt.Errorf("announce: OOM: %w", store.ErrRefused)
	}
	return nil
}

// Announce implements [store.Presence].
func (f *full) Announce(ctx context.Context, process string, ttl time.Duration) error {
	return errors.Join(f.refuse(), f.Store.Announce(ctx, process, ttl))
}

// Commit implements [store.Committer].
func (f *full) Commit(ctx context.Context, c *store.Commit) error {
	f.commits.Add(1)
	if err := f.refuse(); err != nil {
		return err
	}
	return f.Store.Commit(ctx, c)
}

// TestStartWhileTheStoreRefuses: a server starts on a store that is full, so that what is
// there can be read. It is not ready, begins no run and takes none over, until the store
// has accepted its lease.
func TestStartWhileTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		var started atomic.Int32
		dying := &looptest.Mortal{Store: shared}
		first := looptest.Start(t, dying, nil, busy(&started))
		if _, err := first.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		dying.Dead.Store(true)
		if err := shared.Retire(t.Context(), running(t, shared).Process); err != nil { // so nobody needs to wait for it
			t.Fatal(err)
		}

		there := &full{Store: shared}
		there.on.Store(true)
		e := looptest.Start(t, there, nil, busy(&started))
		time.Sleep(30 * time.Second) // many leases
		if err := e.Owner.Ready(t.Context()); !errors.Is(err, store.ErrRefused) {
			t.Errorf("ready: %v, want ErrRefused", err)
		}
		looptest.WantTexts(t, e, "t", "user:go", "assistant:")
		_, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("new", "r1", looptest.UserSays("u1", "go")))
		if looptest.Code(err) != codes.StoreUnavailable {
			t.Errorf("a new run: %v, want %s", err, codes.StoreUnavailable)
		}
		if n := there.commits.Load(); n != 0 {
			t.Errorf("%d commits were tried by a server that nobody knows", n)
		}

		there.on.Store(false)
		time.Sleep(20 * time.Second)
		if err := e.Owner.Ready(t.Context()); err != nil {
			t.Errorf("with room again: %v", err)
		}
		reply, err := e.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
	})
}

// TestStartWithoutTheStore: a store that does not answer is an error of the start.
func TestStartWithoutTheStore(t *testing.T) {
	dead := &looptest.Mortal{Store: memstore.New()}
	dead.Dead.Store(true)
	e, err := looptest.New(looptest.Config{
		Config: loop.Config{
			Store:   dead,
			Lease:   time.Second,
			MaxRuns: 1,
			Now:     clock.Wall,
			NewID:   func(p string) string { return p },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Owner.Start(t.Context()); !errors.Is(err, looptest.ErrUnreachable) {
		t.Errorf("the start: %v, want ErrUnreachable", err)
	}
}
