package storekit_test

import (
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// at is an entry that expires some milliseconds after 1970; 0 is never.
func at(ms int64) store.Entry {
	if ms == 0 {
		return store.Entry{}
	}
	return store.Entry{Expires: time.UnixMilli(ms)}
}

func TestReservationExpiry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entries []int64
		want    storekit.Expiry
	}{
		{[]int64{5}, 5},
		{[]int64{5, 7, 6}, 7},
		{[]int64{7, 5}, 7},
		{[]int64{0}, storekit.Never},
		{[]int64{0, 5}, storekit.Never},
		{[]int64{5, 0, 7}, storekit.Never},
	} {
		r := &store.Reservation{}
		for _, ms := range c.entries {
			r.Entries = append(r.Entries, at(ms))
		}
		if got := storekit.ReservationExpiry(r); got != c.want {
			t.Errorf("entries that expire at %d: the reservation expires at %d, want %d", c.entries, got, c.want)
		}
	}
}

func TestPassed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expires storekit.Expiry
		now     int64
		want    bool
	}{
		{5, 4, false}, {5, 5, true}, {5, 6, true}, {storekit.Never, 0, false}, {storekit.Never, 1 << 60, false},
	} {
		if got := c.expires.Passed(c.now); got != c.want {
			t.Errorf("%d has passed at %d: %t, want %t", c.expires, c.now, got, c.want)
		}
	}
}
