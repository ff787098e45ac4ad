// Package expiry says when something in a [store.Ledger] is forgotten. The stores
// share it, and store its numbers.
package expiry

import "github.com/holdfast-agents/holdfast/store"

// Time is when something expires, in milliseconds since 1970, or Never.
type Time int64

// Never is later than any other Time.
const Never Time = 0

// Of returns when the entry has its account expire.
func Of(e *store.Entry) Time {
	if e.Expires.IsZero() {
		return Never
	}
	return Time(e.Expires.UnixMilli())
}

// OfReservation returns when the reservation expires: with the last of its entries.
func OfReservation(r *store.Reservation) Time {
	last := Of(&r.Entries[0])
	for i := range r.Entries[1:] {
		last = Later(last, Of(&r.Entries[1+i]))
	}
	return last
}

// Later returns the later of the two.
func Later(a, b Time) Time {
	if a == Never || b == Never {
		return Never
	}
	return max(a, b)
}

// Passed reports whether what expires at t has expired by now, which is in
// milliseconds since 1970.
func (t Time) Passed(now int64) bool { return t != Never && int64(t) <= now }
