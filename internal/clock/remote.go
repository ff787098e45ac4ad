package clock

import (
	"sync"
	"time"
)

// Remote is the clock of a store that processes share, as far as this process knows it: what the
// store said, and how much time has passed here since. So a process whose clock on the wall is
// wrong, or jumps, agrees with the others nevertheless, if it reads that clock from time to time.
//
// It is for stamps alone: what happened when, and until when something holds. How long
// something takes in this process is measured by this process.
type Remote struct {
	// Local is the clock of this process.
	Local func() time.Time

	mu   sync.Mutex
	best *reading // nil until the store has said something
}

// reading is what the store said, and when it was asked for that by the local clock. The store
// said it some time between the question and the answer, so with the reading its clock is ahead
// by at most late.
type reading struct {
	said, asked time.Time
	late        time.Duration
}

// drift is the part of its own speed by which a clock may be off: a reading is worth less with
// time.
const drift = 2000

// Stamp returns the time.
func (c *Remote) Stamp() Stamp {
	now := c.Local()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.best; r != nil {
		now = r.at(now)
	}
	return At(now)
}

// at returns the time of the store at a time of the local clock, by the reading.
func (r *reading) at(local time.Time) time.Time { return r.said.Add(local.Sub(r.asked)) }

// Read notes what the store says, in µs since 1970, when it was asked for by the local clock. Of
// two readings that can both be true, the one counts that took less time; so one that was
// held up on its way is dropped. If they cannot, a clock was set, and the new one counts.
func (c *Remote) Read(micros int, asked time.Time) {
	answered := c.Local()
	n := &reading{said: time.UnixMicro(int64(micros)), asked: asked}
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
	ahead := n.said.Sub(r.at(n.asked)) // of the new one
	return n.late <= r.late+off || ahead > n.late+off || ahead < -(r.late+off)
}
