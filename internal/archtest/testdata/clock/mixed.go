// Package clock is what the rule about the two kinds of time is tested with.
package clock

import (
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
)

type config struct {
	stamps clock.Shared
	now    func() time.Time
}

// late measures by the clock for stamps.
func (c *config) late(asked time.Time) bool {
	return c.stamps().Age(asked) > time.Second
}

func since(asked time.Time) bool { return time.Since(asked) > time.Second }

func until(end time.Time) bool { return time.Until(end) > time.Second }

func between(a, b clock.Stamp) time.Duration { return a.Time().Sub(b.Time()) }

// ofStore takes the store's time as what it looks like.
func ofStore(c store.Clock) time.Time { return c.Now() }

// right is how it is meant.
func (c *config) right() (written time.Time, took time.Duration) {
	began := clock.Now()
	return c.stamps().Time(), began.Ran()
}
