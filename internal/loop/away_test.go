package loop_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// busy is an agent whose tool charges once, for ten seconds, and counts its starts.
func busy(started *atomic.Int32) holdfast.Agent {
	charge := looptest.Tool("charge", holdfast.EffectOnce, func(ctx context.Context) (string, error) {
		started.Add(1)
		select {
		case <-time.After(10 * time.Second):
			return "charged", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("charge", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{charge},
	}
}

// outage takes the stores away for 3.4 seconds: longer than the lease of 3 seconds.
func outage(away ...*looptest.Mortal) {
	for _, s := range away {
		s.Dead.Store(true)
	}
	time.Sleep(3400 * time.Millisecond)
	for _, s := range away {
		s.Dead.Store(false)
	}
}

// TestNoRobberyAfterAnOutage: when the store comes back, the leases of all living servers
// have run out. Neither a server that was there nor one that starts just then takes over
// what another one still runs.
func TestNoRobberyAfterAnOutage(t *testing.T) {
	for name, starts := range map[string]bool{"a server that was there": false, "a server that starts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				var started atomic.Int32
				first, second := &looptest.Mortal{Store: shared}, &looptest.Mortal{Store: shared}
				other := looptest.Start(t, second, nil, busy(&started)) // looks for orphans at 3 s and 6 s
				time.Sleep(500 * time.Millisecond)
				owner := looptest.Start(t, first, nil, busy(&started)) // renews at 2.5 s, and next at 6.5 s
				reply, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2100 * time.Millisecond)
				outage(first, second)
				if starts {
					other = looptest.Start(t, second, nil, busy(&started))
				}
				events := looptest.Collect(t, reply, nil)
				looptest.Succeeded(t, events)
				if shown := looptest.Show(events); strings.Contains(shown, "holdfast.takeover") {
					t.Errorf("a living server was robbed:\n%s", shown)
				}
				if n := started.Load(); n != 1 {
					t.Errorf("the tool was started %d times", n)
				}
				looptest.WantTexts(t, other, "t", "user:go", "assistant:", "tool:charged", "assistant:done")
			})
		})
	}
}

// TestTakeoverAfterAnOutage: an owner that does not come back with the store loses its
// runs one lease after that, and no later.
func TestTakeoverAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		var started atomic.Int32
		first, second := &looptest.Mortal{Store: shared}, &looptest.Mortal{Store: shared}
		other := looptest.Start(t, second, nil, busy(&started))
		owner := looptest.Start(t, first, nil, busy(&started))
		if _, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2500 * time.Millisecond)
		first.Dead.Store(true)
		outage(second)
		back := time.Now() // the other server renews its lease 100 ms later
		for running(t, shared).Fence.Epoch == 1 {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(back); took < 3100*time.Millisecond || took > 3150*time.Millisecond {
			t.Errorf("the run was taken over %s after the store was back, want one lease after the next renewal: 3.1s",
				took)
		}
		reply, err := other.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		looptest.Succeeded(t, looptest.Collect(t, reply, err))
		if n := started.Load(); n != 1 {
			t.Errorf("the tool was started %d times", n)
		}
	})
}

// TestFreshServerWaitsALease: a server that has just started does not know whether the
// store was away, so it gives a silent owner a whole lease. One that has retired is known
// to be gone.
func TestFreshServerWaitsALease(t *testing.T) {
	for name, retires := range map[string]bool{"silent": false, "retired": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				var started atomic.Int32
				first := &looptest.Mortal{Store: shared}
				owner := looptest.Start(t, first, nil, busy(&started))
				if _, err := owner.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				first.Dead.Store(true)
				want := 3 * time.Second
				if retires {
					want = 0
					if err := shared.Retire(t.Context(), running(t, shared).Process); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				begun := time.Now()
				looptest.Start(t, shared, nil, busy(&started))
				synctest.Wait()
				for running(t, shared).Fence.Epoch == 1 {
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(begun); took < want || took > want+50*time.Millisecond {
					t.Errorf("the run was taken over after %s, want %s", took, want)
				}
			})
		})
	}
}

// running returns the head of thread "t".
func running(t *testing.T, s store.Store) *store.Head {
	t.Helper()
	return looptest.Must(s.Head(t.Context(), looptest.KeyOf("t")))(t)
}
