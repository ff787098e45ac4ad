// Package redistime is the clock of Redis, by which processes compare times.
package redistime

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/redis/go-redis/v9"
)

// Clock is the clock of Redis, as far as this process knows it: what Redis said, and how much
// time has passed here since. Every renewal of the lease brings a new reading. So a process
// whose clock on the wall is wrong, or jumps, agrees with the others nevertheless.
//
// It is for stamps alone: what happened when, and until when something holds. How long
// something takes in this process is measured by this process.
type Clock struct {
	// Local is the clock of this process.
	Local func() time.Time

	mu   sync.Mutex
	best *reading // nil until Redis has said something
}

// reading is what Redis said, and when it was asked for that by the local clock. Redis said
// it some time between the question and the answer, so with the reading the clock of Redis is
// ahead by at most late.
type reading struct {
	redis, asked time.Time
	late         time.Duration
}

// drift is the part of its own speed by which a clock may be off: a reading is worth less with
// time.
const drift = 2000

// Stamp returns the time.
func (c *Clock) Stamp() clock.Stamp {
	now := c.Local()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.best; r != nil {
		now = r.at(now)
	}
	return clock.At(now)
}

// at returns the time of Redis at a time of the local clock, by the reading.
func (r *reading) at(local time.Time) time.Time { return r.redis.Add(local.Sub(r.asked)) }

// Read notes what Redis says, in µs since 1970, when it was asked for by the local clock. Of
// two readings that can both be true, the one counts that took less time; so one that was
// held up on its way is dropped. If they cannot, a clock was set, and the new one counts.
func (c *Clock) Read(micros int, asked time.Time) {
	answered := c.Local()
	n := &reading{redis: time.UnixMicro(int64(micros)), asked: asked}
	// A machine that slept meanwhile shows that on the wall alone.
	n.late = max(answered.Sub(asked), answered.Round(0).Sub(asked.Round(0)), 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.best == nil || c.best.yields(n) {
		c.best = n
	}
}

// yields reports whether a newer reading counts instead.
func (r *reading) yields(n *reading) bool {
	off := max(n.asked.Sub(r.asked), 0) / drift
	ahead := n.redis.Sub(r.at(n.asked)) // of the new one
	return n.late <= r.late+off || ahead > n.late+off || ahead < -(r.late+off)
}

// Lua is how scripts read that clock. Times are in microseconds, which a score represents
// exactly.
const Lua = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
`

// Ask asks Redis. Without an answer the local clock goes on until the lease is renewed.
func (c *Clock) Ask(ctx context.Context, client redis.UniversalClient) {
	asked := c.Local()
	if t, err := client.Time(ctx).Result(); err == nil {
		c.Read(int(t.UnixMicro()), asked)
	}
}
