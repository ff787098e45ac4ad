// Package clock keeps two kinds of time apart that look the same and must not be mixed.
//
// A [Stamp] is what the clock on the wall says, or the clock of a store that several processes
// share. It is for what is written down: when something happened, or until when something
// holds, for others to compare. Such a clock may be set, or be read late, so nothing in a
// process is measured by it. A stamp that is read while the clock moves is early or late by as
// much.
//
// A [Moment] is a point in the life of this process. It is for whatever this process
// measures: how long something took, whether an answer is too old to count, how long to
// wait. It is written nowhere, and means nothing to another process.
//
// Neither can be made from the other.
package clock

import (
	"sync"
	"time"
)

// Stamp is a time by a clock that others read, too.
type Stamp struct{ at time.Time }

// At returns the stamp of a time that a clock for stamps has shown.
func At(t time.Time) Stamp { return Stamp{t.Round(0)} }

// Time returns the stamp as it is written down. It has no monotonic reading.
func (s Stamp) Time() time.Time { return s.at }

// UTC returns the stamp as it is written down, in UTC.
func (s Stamp) UTC() time.Time { return s.at.UTC() }

// UnixMilli returns the stamp in ms since 1970.
func (s Stamp) UnixMilli() int64 { return s.at.UnixMilli() }

// Add returns the stamp of something that others compare: until when it holds.
func (s Stamp) Add(d time.Duration) Stamp { return Stamp{s.at.Add(d)} }

// Before reports whether what was written down is still to come.
func (s Stamp) Before(written time.Time) bool { return s.at.Before(written) }

// Age returns how long ago something that was written down happened, by stamps alone.
func (s Stamp) Age(written time.Time) time.Duration { return s.at.Sub(written) }

// Shared is a clock for stamps.
type Shared func() Stamp

// Wall is the clock on this machine's wall.
func Wall() Stamp { return At(time.Now()) }

// Plain returns a clock that shows what now does.
func Plain(now func() time.Time) Shared { return func() Stamp { return At(now()) } }

// slowest is the part of its speed at which a [Steady] clock waits for one that was put back.
const slowest = 2

// Steady returns a clock that shows what now does, but never goes back: what ends has no
// earlier stamp than it began with. When now was put back, the clock goes at half its speed
// until now has caught up, so it does not stand still either.
func Steady(now func() time.Time) Shared {
	s := &steady{now: now}
	return s.stamp
}

type steady struct {
	now func() time.Time

	mu    sync.Mutex
	shown time.Time // the last stamp
	at    time.Time // when that was, by this process's timer
}

func (s *steady) stamp() Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, t := time.Now(), s.now().Round(0)
	if !s.at.IsZero() {
		// By the timer alone: the clock on the wall may be what was put back.
		if earliest := s.shown.Add(at.Sub(s.at) / slowest); t.Before(earliest) {
			t = earliest
		}
	}
	s.at, s.shown = at, t
	return Stamp{t}
}
