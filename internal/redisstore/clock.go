package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clock is the clock of Redis, as far as this process knows it: what Redis said last, and how
// much time has passed here since. Every renewal of the lease brings a new reading. So a process
// whose clock on the wall is wrong, or jumps, agrees with the others all the same.
type clock struct {
	local   func() time.Time
	reading atomic.Pointer[reading]
}

// reading is what Redis said, and when that was by the local clock.
type reading struct{ redis, local time.Time }

// Now implements [store.Clock].
func (c *clock) Now() time.Time {
	now := c.local()
	if r := c.reading.Load(); r != nil {
		return r.redis.Add(now.Sub(r.local))
	}
	return now
}

// read notes what Redis says, in µs since 1970.
func (c *clock) read(micros int) {
	c.reading.Store(&reading{redis: time.UnixMicro(int64(micros)), local: c.local()})
}

// ask asks Redis. Without an answer the local clock goes on until the lease is renewed.
func (c *clock) ask(ctx context.Context, client redis.UniversalClient) {
	if t, err := client.Time(ctx).Result(); err == nil {
		c.read(int(t.UnixMicro()))
	}
}
