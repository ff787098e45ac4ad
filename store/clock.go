package store

import "time"

// Clock is a [Store] with a clock that all processes that use it share, more or less: whatever
// is compared between processes goes by it, so that one whose own clock is off does no harm.
type Clock interface {
	// Now returns the time by that clock.
	Now() time.Time
}
