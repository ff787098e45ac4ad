package loop_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// crammed is a store that has no room for a while: it can be read, and refuses commits. If it says
// so, it is asked.
type crammed struct {
	store.Store
	full    atomic.Bool
	commits atomic.Int64 // that were refused
}

// Commit implements [store.Committer].
func (c *crammed) Commit(ctx context.Context, commit *store.Commit) error {
	if c.full.Load() {
		c.commits.Add(1)
		return fmt.Errorf("no room: %w", store.ErrRefused)
	}
	return c.Store.Commit(ctx, commit)
}

// candid is one that says so.
type candid struct{ *crammed }

// CanCommit implements [store.CommitChecker].
func (c candid) CanCommit(context.Context) error {
	if c.full.Load() {
		return store.ErrRefused
	}
	return nil
}

// TestRoomAgain: runs that were given up because the store had no room go on within half a second of
// the moment in which it has, and until then nobody keeps trying each of them, if the store says that
// it refuses all commits.
func TestRoomAgain(t *testing.T) {
	const runs = 50
	for _, says := range []bool{false, true} {
		t.Run(fmt.Sprint("says=", says), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &crammed{Store: memstore.New()}
				var s store.Store = c
				if says {
					s = candid{c}
				}
				var started atomic.Int32
				e := looptest.Start(t, s, func(cfg *looptest.Config) { cfg.StoreTimeout = 5 * time.Second },
					naps(3, 4*time.Second, &started))
				for i := range runs {
					in := looptest.RunInput(fmt.Sprint("t", i), "r1", looptest.UserSays("u1", "go"))
					if _, err := e.Owner.Post(t.Context(), looptest.Alice, "", in); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				c.full.Store(true)
				time.Sleep(20 * time.Second)
				if n := e.Owner.Running(); n > 0 {
					t.Errorf("%d runs were not given up", n)
				}
				before := c.commits.Load()
				time.Sleep(10 * time.Second)
				if tried := c.commits.Load() - before; says && tried > runs {
					t.Errorf("%d commits were tried in vain", tried)
				}
				c.full.Store(false)
				time.Sleep(500 * time.Millisecond)
				if n := e.Owner.Running(); n != runs {
					t.Errorf("of %d runs, %d go on", runs, n)
				}
				time.Sleep(time.Minute)
				for i := range runs {
					info, err := e.Keeper.Thread(t.Context(), looptest.Alice, fmt.Sprint("t", i))
					if err != nil || info.Status != threads.StatusIdle || info.Outcome != holdfast.OutcomeSuccess {
						t.Fatalf("t%d is %+v, %v", i, info, err)
					}
				}
			})
		})
	}
}
