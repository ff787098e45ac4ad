package clock

import "time"

// Moment is a point in the life of this process. The zero Moment was long ago.
type Moment struct{ at time.Time }

// Now returns this moment.
func Now() Moment { return Moment{time.Now()} }

// Elapsed returns how long ago the moment was: what has passed by the monotonic clock or by
// the clock on the wall, whichever is more. The monotonic one, by which timers go, may stand
// still while a machine sleeps. The other one may be set; then the moment looks older than it
// is, and a check whether something is too old errs on the safe side.
func (m Moment) Elapsed() time.Duration { return m.To(Now()) }

// To returns how long after m the other moment was, by whichever clock says more.
func (m Moment) To(other Moment) time.Duration {
	return max(other.at.Sub(m.at), other.at.Round(0).Sub(m.at.Round(0)))
}

// Ran returns how long ago the moment was by the monotonic clock alone. It is for what is
// reported, and for waits: a clock on the wall that was set must not show there.
func (m Moment) Ran() time.Duration { return time.Since(m.at) }

// Before reports whether m was before the other moment.
func (m Moment) Before(other Moment) bool { return m.at.Before(other.at) }

// Never reports whether m is the zero Moment.
func (m Moment) Never() bool { return m.at.IsZero() }
