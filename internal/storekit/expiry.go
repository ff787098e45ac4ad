// Package storekit has the common parts of the stores: the expiry of a ledger's entries, and
// the waiters for a thread.
package storekit

import "github.com/holdfast-agents/holdfast/store"

// Expiry is when something in a [store.Ledger] is forgotten, in milliseconds since 1970, or
// Never. The stores store its number.
type Expiry int64

// Never is later than any other Expiry.
const Never Expiry = 0

// ExpiryOf returns when the entry has its account expire.
func ExpiryOf(e *store.Entry) Expiry {
	if e.Expires.IsZero() {
		return Never
	}
	return Expiry(e.Expires.UnixMilli())
}

// ReservationExpiry returns when the reservation expires: with the last of its entries.
func ReservationExpiry(r *store.Reservation) Expiry {
	last := ExpiryOf(&r.Entries[0])
	for i := range r.Entries[1:] {
		last = LaterExpiry(last, ExpiryOf(&r.Entries[1+i]))
	}
	return last
}

// LaterExpiry returns the later of the two.
func LaterExpiry(a, b Expiry) Expiry {
	if a == Never || b == Never {
		return Never
	}
	return max(a, b)
}

// Passed reports whether what expires at t has expired by now, which is in
// milliseconds since 1970.
func (t Expiry) Passed(now int64) bool { return t != Never && int64(t) <= now }
