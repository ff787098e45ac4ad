package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// openOff opens a store in a process whose clock is off.
func openOff(t *testing.T, url string, off time.Duration) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, Options{Now: func() time.Time { return time.Now().Add(off) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestClocksThatAreOff: two processes whose clocks are two hours apart agree on the time, wake
// each other, and leave each other's hints and leases alone.
func TestClocksThatAreOff(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	fast, slow := openOff(t, url, time.Hour), openOff(t, url, -time.Hour)
	ctx := t.Context()
	for name, s := range map[string]*Store{"fast": fast, "slow": slow} {
		if err := s.Announce(ctx, name, time.Minute); err != nil {
			t.Fatal(err)
		}
		if off := time.Since(s.Now()).Abs(); off > 10*time.Second {
			t.Errorf("the clock of the %s process is off by %s", name, off)
		}
	}
	for i, pair := range []struct {
		name          string
		writes, looks *Store
	}{{"fast", fast, slow}, {"slow", slow, fast}} {
		key := aThread(pair.name)
		claim := func(c *store.Commit) { c.Process, c.UpdatedAt = pair.name, pair.writes.Now() }
		advance(t, pair.writes, key, claim)
		wake, stop := pair.looks.Watch(key)
		defer stop()
		redistest.Await(t, func() error { // until the thread publishes
			advance(t, pair.writes, key, claim)
			select {
			case <-wake:
				return nil
			case <-time.After(10 * time.Millisecond):
				return context.DeadlineExceeded
			}
		})
		// A hint whose commit is still on its way.
		if err := pair.writes.client.ZAdd(ctx, fast.keys.owned(pair.name), zOf(pair.writes, "acme/soon")).
			Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			owned, err := pair.looks.Owned(ctx)
			if err != nil || len(owned) != i+1 {
				t.Errorf("%d threads are owned, %v", len(owned), err)
			}
		}
		if n := pair.looks.client.ZCard(ctx, fast.keys.owned(pair.name)).Val(); n != 2 {
			t.Errorf("of two hints of the %s process %d are left", pair.name, n)
		}
		if l, err := pair.looks.Lease(ctx, pair.name); err != nil || !l.Alive() {
			t.Errorf("the %s process: %+v, %v", pair.name, l, err)
		}
	}
}

// zOf is a hint that is written now.
func zOf(s *Store, tag string) redis.Z {
	return redis.Z{Score: float64(s.hints.score(s.Now())), Member: tag}
}
