package storetest

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-agents/holdfast/store"
)

// accounts are the names of accounts and reservations that random commands use.
func accounts() []string { return []string{"a", "b/a", "a\x00"} }

func drawAccount(r *rapid.T) string { return rapid.SampledFrom(accounts()).Draw(r, "account") }

func drawAmount(r *rapid.T) int64 {
	return rapid.SampledFrom([]int64{0, 1, 2, 3, 10, store.MaxAmount - 1, store.MaxAmount}).Draw(r, "amount")
}

// reserve lets some time pass and then makes a reservation.
func (p *pair) reserve(r *rapid.T) {
	p.passed += rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Minute, time.Hour}).
		Draw(r, "time passes")
	now := ledgerStart().Add(p.passed)
	reservation := &store.Reservation{Tenant: drawTenant(r), ID: drawAccount(r), Now: now}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(accounts()), 0, 3, rapid.ID).Draw(r, "accounts")
	for _, name := range names {
		e := store.Entry{Account: name, Amount: drawAmount(r), Limit: drawAmount(r)}
		if rapid.IntRange(0, 2).Draw(r, "expires?") > 0 {
			e.Expires = now.Add(rapid.SampledFrom([]time.Duration{
				time.Millisecond, time.Minute, time.Hour, 2 * time.Hour, 0, -time.Minute,
			}).Draw(r, "expires"))
		}
		reservation.Entries = append(reservation.Entries, e)
	}
	p.same(r, "Reserve", func(s store.Store) (any, error) {
		var limit *store.LimitError
		err := s.Reserve(p.test.Context(), reservation)
		if errors.As(err, &limit) {
			return fmt.Sprintf("%+v", *limit), nil
		}
		return "made", err
	})
	p.observeLedger(r, reservation.Tenant)
}

func (p *pair) settle(r *rapid.T) {
	tenant, id, actual := drawTenant(r), drawAccount(r), map[string]int64{}
	for range rapid.IntRange(0, 3).Draw(r, "accounts") {
		actual[drawAccount(r)] = drawAmount(r)
	}
	p.same(r, "Settle", func(s store.Store) (any, error) { return nil, s.Settle(p.test.Context(), tenant, id, actual) })
	p.observeLedger(r, tenant)
}

// observeLedger reads all accounts of the tenant.
func (p *pair) observeLedger(r *rapid.T, tenant string) {
	p.same(r, fmt.Sprintf("accounts of %q", tenant), func(s store.Store) (any, error) {
		used, err := s.Used(p.test.Context(), tenant, accounts())
		return fmt.Sprint(used), err
	})
}
