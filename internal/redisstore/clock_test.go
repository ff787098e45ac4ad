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

// TestClockJumps: a clock that jumps is right again once the lease is renewed.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	off := time.Duration(0)
	c := redisClock{local: func() time.Time { return time.Unix(1000, 0).Add(off) }}
	if at := c.stamp().Time(); at.Unix() != 1000 {
		t.Errorf("before Redis was asked, it is %s", at)
	}
	c.read(5_000_000_000, c.local())
	for _, step := range []struct{ off, want time.Duration }{{0, 5000 * time.Second},
		{7 * time.Second, 5007 * time.Second}, {time.Hour, 8600 * time.Second}} {
		off = step.off
		if at := c.stamp().Time(); at.UnixNano() != int64(step.want) {
			t.Errorf("after %s it is %s", off, at)
		}
	}
	c.read(5_008_000_000, c.local())
	if at := c.stamp().Time(); at.Unix() != 5008 {
		t.Errorf("after the renewal it is %s", at)
	}
}

// TestLateReadings: what Redis says counts from when it was asked. An answer that was held up is
// dropped, unless it shows that the clock of Redis was set.
func TestLateReadings(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	now, redis := start, 5000*time.Second
	c := redisClock{local: func() time.Time { return now }}
	answer := func(there, back time.Duration) { // how long the question takes, and the answer
		asked := now
		now = now.Add(there)
		said := redis + now.Sub(start)
		now = now.Add(back)
		c.read(int(said.Microseconds()), asked)
	}
	for i, step := range []struct{ wait, set, there, back, wrong time.Duration }{
		{0, 0, time.Millisecond, time.Millisecond, time.Millisecond},
		{time.Second, 0, 10 * time.Millisecond, 2200 * time.Millisecond, time.Millisecond}, // held up: dropped
		{time.Second, 0, 0, 6 * time.Second, time.Millisecond},
		{time.Second, 0, time.Millisecond, 0, time.Millisecond},
		{time.Second, -time.Hour, time.Millisecond, time.Second, time.Millisecond}, // Redis was put back
		{time.Second, 0, 0, time.Millisecond, 0},
		{time.Second, 2 * time.Hour, 100 * time.Millisecond, 100 * time.Millisecond,
			100 * time.Millisecond}, // and forward
		{time.Hour, 0, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		now, redis = now.Add(step.wait), redis+step.set
		answer(step.there, step.back)
		if wrong := c.stamp().Time().Sub(time.Unix(0, 0).Add(redis + now.Sub(start))); wrong != step.wrong {
			t.Errorf("reading %d: the clock is ahead by %s, want %s", i, wrong, step.wrong)
		}
	}
}

// zOf is a hint that is written now.
func zOf(s *Store, tag string) redis.Z {
	return redis.Z{Score: float64(s.hints.score(s.Now())), Member: tag}
}
