package holdfast

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestReservationValidate: values that stores could not all keep in the same way are
// refused before they reach one.
func TestReservationValidate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxName+1)
	good := func() *Reservation {
		return &Reservation{Tenant: "acme", ID: "r", Entries: []Entry{{Account: "a", Amount: MaxAmount, Limit: MaxAmount}, {Account: "b", Expires: time.Unix(1, 0)}}}
	}
	if err := good().Validate(); err != nil {
		t.Errorf("a good reservation: %v", err)
	}
	for name, change := range map[string]func(r *Reservation){
		"no id":             func(r *Reservation) { r.ID = "" },
		"no entries":        func(r *Reservation) { r.Entries = nil },
		"no account":        func(r *Reservation) { r.Entries[1].Account = "" },
		"an account twice":  func(r *Reservation) { r.Entries[1].Account = "a" },
		"a negative amount": func(r *Reservation) { r.Entries[1].Amount = -1 },
		"a negative limit":  func(r *Reservation) { r.Entries[1].Limit = -1 },
		"too large amount":  func(r *Reservation) { r.Entries[1].Amount = MaxAmount + 1 },
		"too large limit":   func(r *Reservation) { r.Entries[1].Limit = MaxAmount + 1 },
		"expires in 1969":   func(r *Reservation) { r.Entries[1].Expires = time.Unix(-1, 0) },
		"expires in 10000":  func(r *Reservation) { r.Entries[1].Expires = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a long tenant":     func(r *Reservation) { r.Tenant = long },
		"a long id":         func(r *Reservation) { r.ID = long },
		"a long account":    func(r *Reservation) { r.Entries[1].Account = long },
	} {
		r := good()
		change(r)
		if err := r.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for amount, want := range map[int64]error{0: nil, MaxAmount: nil, -1: ErrInvalid, MaxAmount + 1: ErrInvalid} {
		if err := ValidateActual(map[string]int64{"a": amount}); !errors.Is(err, want) {
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
		{used: MaxAmount - 1, amount: 1, fits: true},
		{used: MaxAmount, amount: 1},
		{used: MaxAmount, amount: MaxAmount, limit: 1},
	} {
		e := Entry{Account: "a", Amount: c.amount, Limit: c.limit}
		err := e.Check(c.used)
		var limit *LimitError
		if c.fits != (err == nil) || !c.fits && (!errors.As(err, &limit) || limit.Used != c.used || limit.Amount != c.amount || limit.Limit < c.limit) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	err := (&Entry{Account: "tokens", Amount: 3, Limit: 10}).Check(8)
	if want := "account tokens: 8 used, 3 more would exceed the limit of 10"; err.Error() != want {
		t.Errorf("the error says %q, want %q", err, want)
	}
}
