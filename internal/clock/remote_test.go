package clock

import (
	"testing"
	"time"
)

// TestClockJumps: a clock that jumps is right again once the lease is renewed.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	off := time.Duration(0)
	c := Remote{Local: func() time.Time { return time.Unix(1000, 0).Add(off) }}
	if at := c.Stamp().Time(); at.Unix() != 1000 {
		t.Errorf("before Redis was asked, it is %s", at)
	}
	c.Read(5_000_000_000, c.Local())
	for _, step := range []struct{ off, want time.Duration }{{0, 5000 * time.Second},
		{7 * time.Second, 5007 * time.Second}, {time.Hour, 8600 * time.Second}} {
		off = step.off
		if at := c.Stamp().Time(); at.UnixNano() != int64(step.want) {
			t.Errorf("after %s it is %s", off, at)
		}
	}
	c.Read(5_008_000_000, c.Local())
	if at := c.Stamp().Time(); at.Unix() != 5008 {
		t.Errorf("after the renewal it is %s", at)
	}
}

// TestLateReadings: what Redis says counts from when it was asked. An answer that was held up is
// dropped, unless it shows that the clock of Redis was set.
func TestLateReadings(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	now, redis := start, 5000*time.Second
	c := Remote{Local: func() time.Time { return now }}
	answer := func(there, back time.Duration) { // how long the question takes, and the answer
		asked := now
		now = now.Add(there)
		said := redis + now.Sub(start)
		now = now.Add(back)
		c.Read(int(said.Microseconds()), asked)
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
		if wrong := c.Stamp().Time().Sub(time.Unix(0, 0).Add(redis + now.Sub(start))); wrong != step.wrong {
			t.Errorf("reading %d: the clock is ahead by %s, want %s", i, wrong, step.wrong)
		}
	}
}
