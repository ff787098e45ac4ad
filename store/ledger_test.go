package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// TestReservationValidate: values that stores could not all keep in the same way are
// refused before they reach one.
func TestReservationValidate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", store.MaxName+1)
	good := func() *store.Reservation {
		return &store.Reservation{
			Tenant: "acme",
			ID:     "r",
			Entries: []store.Entry{
				{Account: "a", Amount: store.MaxAmount, Limit: store.MaxAmount},
				{Account: "b", Expires: time.Unix(1, 0)},
			},
		}
	}
	if err := good().Validate(); err != nil {
		t.Errorf("a good reservation: %v", err)
	}
	for name, change := range map[string]func(r *store.Reservation){
		"no id":             func(r *store.Reservation) { r.ID = "" },
		"no entries":        func(r *store.Reservation) { r.Entries = nil },
		"no account":        func(r *store.Reservation) { r.Entries[1].Account = "" },
		"an account twice":  func(r *store.Reservation) { r.Entries[1].Account = "a" },
		"a negative amount": func(r *store.Reservation) { r.Entries[1].Amount = -1 },
		"a negative limit":  func(r *store.Reservation) { r.Entries[1].Limit = -1 },
		"too large amount":  func(r *store.Reservation) { r.Entries[1].Amount = store.MaxAmount + 1 },
		"too large limit":   func(r *store.Reservation) { r.Entries[1].Limit = store.MaxAmount + 1 },
		"expires in 1969":   func(r *store.Reservation) { r.Entries[1].Expires = time.Unix(-1, 0) },
		"expires in 10000": func(r *store.Reservation) {
			r.Entries[1].Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		"a long tenant":  func(r *store.Reservation) { r.Tenant = long },
		"a long id":      func(r *store.Reservation) { r.ID = long },
		"a long account": func(r *store.Reservation) { r.Entries[1].Account = long },
	} {
		r := good()
		change(r)
		if err := r.Validate(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for amount, want := range map[int64]error{0: nil, store.MaxAmount: nil, -1: store.ErrInvalid, store.MaxAmount +
		1: store.ErrInvalid} {
		if err := store.ValidateActual(map[string]int64{"a": amount}); !errors.Is(err, want) {
			t.Errorf("settling with %d: %v, want %v", amount, err, want)
		}
	}
}

// TestEntryCheck: a limit may be reached but not exceeded, and without a limit the
// numbers remain exact.
func TestEntryCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		used, amount, limit int64
		fits                bool
	}{
		{used: 7, amount: 3, limit: 10, fits: true},
		{used: 8, amount: 3, limit: 10},
		{used: 11, amount: 0, limit: 10},
		{used: store.MaxAmount - 1, amount: 1, fits: true},
		{used: store.MaxAmount, amount: 1},
		{used: store.MaxAmount, amount: store.MaxAmount, limit: 1},
	} {
		e := store.Entry{Account: "a", Amount: c.amount, Limit: c.limit}
		err := e.Check(c.used)
		var limit *store.LimitError
		if c.fits != (err == nil) || !c.fits &&
			(!errors.As(err, &limit) || limit.Used != c.used || limit.Amount != c.amount || limit.Limit < c.limit) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	err := (&store.Entry{Account: "tokens", Amount: 3, Limit: 10}).Check(8)
	if want := "account tokens: 8 used, 3 more would exceed the limit of 10"; err.Error() != want {
		t.Errorf("the error says %q, want %q", err, want)
	}
}

type emptyLedger struct{ store.Ledger }

// TestLedgerFrom: the ledger of a run is in its context, and nowhere else.
func TestLedgerFrom(t *testing.T) {
	t.Parallel()
	if l, err := store.LedgerFrom(store.ContextWithLedger(t.Context(), emptyLedger{})); l != (emptyLedger{}) ||
		err != nil {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := store.LedgerFrom(t.Context()); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("outside a run: %v", err)
	}
}
