// Package circuit keeps requests away from models that do not answer. Each model, with the
// place where it is asked and the key that it is asked with, has a circuit. Failures open
// it; while it is open the model should not be asked, and after that one request at a time
// tries it. Processes that share a store tell each other what they find out.
package circuit

import (
	"time"

	"github.com/holdfast-agents/holdfast/failure"
)

// The failures that open a circuit, and for how long.
//
// Failures are counted in a row, not in a share of all calls: one success shows that the
// model can answer, and a model that answers now and then is better than none, since other
// failures are tried again. A share would also need many calls to mean something, which a
// small server does not have.
const (
	// Threshold is how many failures in a row open a circuit.
	Threshold = 5
	// Memory is how long a failure counts: one that comes later begins a new row.
	Memory = 5 * time.Minute
	// First is how long a circuit is open at first. It doubles each time that the request
	// that tries the model fails too.
	First = 10 * time.Second
	// Longest bounds how long a circuit is open before a request tries the model, whatever
	// a provider asks for. It is how long a used-up account and a refused key open it: only
	// people can change that, and they should not have to restart the server to be noticed.
	Longest = 5 * time.Minute
	// Patience is how long a request may try a model before the next one may: the one
	// before may have been cut off.
	Patience = 30 * time.Second
	// distrust is how long a process ignores hints about a model that has answered it
	// although others had said that it does not.
	distrust = time.Hour
	// worth is the difference that makes an end worth telling, in the log and in hints.
	worth = time.Second
	// change is how much later an open circuit must end to be opened again: of a hundred calls
	// under way, each may fail and ask for a little more time.
	change = 5 * time.Second
)

// state is what a circuit has just become.
type state int

const (
	same     state = iota // nothing to tell
	opened                // by a failure
	reopened              // by the failure of a request that tried the model, or for longer
	told                  // opened by another process
	closed
)

// circuit is the state of one circuit. It has no lock and no clock.
type circuit struct {
	// failures counts those in a row, of which last was the newest.
	failures int
	last     time.Time
	// until is when the circuit is open no more, and the next request tries the model. It is
	// zero while the circuit is closed.
	until time.Time
	kind  failure.Kind // why it is open
	// times is how often in a row it was opened by counting.
	times int
	// trying is when a request began to try the model; zero if none does.
	trying time.Time
	// byHint means that another process has said so.
	byHint bool
	// wrong is until when hints are ignored.
	wrong time.Time
}

// open returns whether the model should not be asked now, and until when.
func (c *circuit) open(now time.Time) (until time.Time, open bool) {
	switch {
	case c.until.IsZero():
		return time.Time{}, false
	case now.Before(c.until):
		return c.until, true
	}
	if next := c.trying.Add(Patience); !c.trying.IsZero() && now.Before(next) {
		return next, true
	}
	return time.Time{}, false
}

// halfOpen reports whether the circuit waits for a request that tries the model.
func (c *circuit) halfOpen(now time.Time) bool { return !c.until.IsZero() && !now.Before(c.until) }

// begin notes that a request is sent.
func (c *circuit) begin(now time.Time) {
	if c.halfOpen(now) {
		c.trying = now
	}
}

// succeeded notes that the model has answered. While the circuit is open that says nothing:
// the answer began before.
func (c *circuit) succeeded(now time.Time) state {
	switch {
	case c.until.IsZero():
		c.failures = 0
		return same
	case now.Before(c.until):
		return same
	}
	if c.byHint {
		c.wrong = now.Add(distrust)
	}
	*c = circuit{wrong: c.wrong}
	return closed
}

// failed notes a failure. after is how long the provider asked to wait; 0 if it did not.
func (c *circuit) failed(now time.Time, kind failure.Kind, after time.Duration) state {
	half := c.halfOpen(now)
	var d time.Duration
	switch kind {
	case failure.Quota, failure.Auth:
		d = Longest
	case failure.Rate, failure.Overloaded, failure.Cut:
		if kind == failure.Rate && after > 0 {
			d = after
			break
		}
		if !half && !c.count(now) {
			return same
		}
		d = max(min(First<<min(c.times, 10), Longest), after)
		c.times++
	default:
		// The provider has refused what it was asked, which says nothing about the model.
		// If that was the request that tried it, the next one does.
		c.trying = time.Time{}
		return same
	}
	return c.trip(now, kind, now.Add(min(d, Longest)), half)
}

// count counts a failure, and reports whether there are enough in a row. Those of calls
// that were under way when the circuit opened are too late to count.
func (c *circuit) count(now time.Time) bool {
	if !c.until.IsZero() {
		return false
	}
	if now.Sub(c.last) > Memory {
		c.failures = 0
	}
	c.failures, c.last = c.failures+1, now
	return c.failures >= Threshold
}

// trip opens the circuit, or keeps it open for longer.
func (c *circuit) trip(now time.Time, kind failure.Kind, until time.Time, half bool) state {
	is := opened
	switch {
	case half:
		is = reopened
	case !c.until.IsZero():
		if until.Before(c.until.Add(change)) {
			return same
		}
		is = reopened
	}
	c.until, c.kind, c.failures, c.trying, c.byHint = until, kind, 0, time.Time{}, false
	return is
}

// heard takes a hint of another process: the circuit should be open for so long. A circuit
// that is open or waits for a request takes none, so that this process tries the model
// itself before it believes the next one: whatever others say, it is never kept from it for
// longer than Longest. Nobody writes a hint that lasts longer than that.
func (c *circuit) heard(now time.Time, kind failure.Kind, left time.Duration) state {
	if !c.until.IsZero() || now.Before(c.wrong) || left < worth || left > Longest {
		return same
	}
	c.until, c.kind, c.failures, c.trying, c.byHint = now.Add(left), kind, 0, time.Time{}, true
	return told
}
