package pace

import (
	"slices"
	"time"
)

// The line of one circuit. It has no lock and no clock.

// line is where the calls of a circuit wait, the first one first.
type line struct {
	places []*Place
	// rate is how many calls a second are let go, least how few it can become, and growth what it is
	// multiplied by after each step.
	rate, least, growth float64
	// allowance is how many calls may be made now, and most how many that becomes while nobody waits.
	allowance, most float64
	// counted is until when the allowance is counted. While that is to come, the provider has asked to
	// wait.
	counted time.Time
	// stepped is when the rate has last grown, and fell when it was last halved.
	stepped, fell time.Time
}

// newLine returns a line in which nobody has waited for long. servers is how many share the calls. If they
// are more than the first calls, chance has a fitting number of them let one go, and spreads the next ones.
func newLine(now time.Time, servers int, random func() float64) *line {
	share := 1 / float64(max(servers, 1))
	first, rate := First*share, firstRate*share
	l := &line{
		rate:      rate,
		least:     min(slowest, rate/8),
		growth:    2,
		allowance: max(first, 1),
		most:      max(first, 1),
		counted:   now,
		stepped:   now,
	}
	if first < 1 && random() >= first {
		l.allowance = random()
	}
	return l
}

// forgotten reports whether the line is so old that what it has found out means nothing any more.
func (l *line) forgotten(now time.Time) bool {
	return len(l.places) == 0 && now.Sub(l.counted) > memory
}

// advance counts what is allowed by now.
func (l *line) advance(now time.Time) {
	d := now.Sub(l.counted)
	if d <= 0 {
		return
	}
	switch {
	case len(l.places) == 0: // the rate is not put to the test
		l.stepped = now
	case now.Sub(l.stepped) >= Step:
		l.rate *= l.growth
		l.stepped = now
	}
	most := l.most
	if len(l.places) > 0 { // the timer may be late
		most = max(most, l.rate*Step.Seconds())
	}
	l.allowance, l.counted = min(l.allowance+l.rate*d.Seconds(), most), now
}

// take takes one call off what is allowed, and reports whether that was possible.
func (l *line) take() bool {
	const almost = 1 - 1e-6 // sums of fractions are not exact
	if l.allowance < almost {
		return false
	}
	l.allowance--
	return true
}

// next returns how long after now the next call may be made.
func (l *line) next(now time.Time) time.Duration {
	d := time.Duration((1 - l.allowance) / l.rate * float64(time.Second))
	return max(l.counted.Sub(now)+min(d, Step), shortest)
}

// refused notes that the provider has refused a call, and how long it asked to wait; 0 if it did not.
// It reports whether the line was open, and is not any more. Of calls that were made at the same rate,
// only the first one that is refused counts.
func (l *line) refused(now time.Time, after time.Duration) (closed bool) {
	l.advance(now)
	open := !now.Before(l.counted)
	if open && now.Sub(l.fell) >= Step {
		l.rate, l.most, l.fell = max(l.rate/2, l.least), max(l.most/2, 1), now
		l.growth = careful
		l.stepped = now
	}
	if until := now.Add(min(after, longest)); until.After(l.counted) {
		l.counted, l.stepped, l.allowance = until, until, 0
		return open
	}
	return false
}

// remove takes a place out of the line.
func (l *line) remove(p *Place) {
	if at := slices.Index(l.places, p); at >= 0 {
		l.places = slices.Delete(l.places, at, at+1)
	}
}

// let lets those go on who may now.
func (l *line) let(now time.Time) {
	l.advance(now)
	for len(l.places) > 0 && !now.Before(l.counted) && l.take() {
		l.places[0].told <- true
		l.places = slices.Delete(l.places, 0, 1)
	}
}

// lookAgain has those look for another model who have one.
func (l *line) lookAgain() {
	l.places = slices.DeleteFunc(l.places, func(p *Place) bool {
		if p.others {
			p.told <- false
		}
		return p.others
	})
}
