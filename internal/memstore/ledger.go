package memstore

import (
	"context"
	"maps"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// The Ledger role: accounts and reservations, by tenant. Time passes for a tenant
// when a reservation is made; that is also when what has expired is removed.

// ledger is what one tenant has counted.
type ledger struct {
	now      int64           // of the last reservation, in milliseconds since 1970
	due      storekit.Expiry // nothing expires earlier
	accounts map[string]*account
	held     map[string]*reservation
}

type account struct {
	used    int64
	expires storekit.Expiry
}

// reservation is one that has not been settled yet.
type reservation struct {
	added   []amount
	expires storekit.Expiry
}

// amount is what a reservation added to an account. The pointer distinguishes that
// account from a later one of the same name, made after it expired.
type amount struct {
	name    string
	account *account
	n       int64
}

// live returns the account, or nil if there is none or it has expired.
func (l *ledger) live(name string, now int64) *account {
	if a := l.accounts[name]; a != nil && !a.expires.Passed(now) {
		return a
	}
	return nil
}

// Reserve implements [store.Ledger].
func (s *Store) Reserve(ctx context.Context, r *store.Reservation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ledgers[r.Tenant]
	if l == nil {
		l = &ledger{accounts: map[string]*account{}, held: map[string]*reservation{}}
	}
	now := r.Now.UnixMilli()
	if h := l.held[r.ID]; h != nil && !h.expires.Passed(now) {
		return nil
	}
	for i := range r.Entries {
		e, used := &r.Entries[i], int64(0)
		if a := l.live(e.Account, now); a != nil {
			used = a.used
		}
		if err := e.Check(used); err != nil {
			return err
		}
	}
	l.now = now
	l.sweep()
	l.add(r)
	s.ledgers[r.Tenant] = l
	return nil
}

// add makes a reservation that fits in every account. It follows sweep, so that
// no expired account is left.
func (l *ledger) add(r *store.Reservation) {
	h := &reservation{expires: storekit.ReservationExpiry(r)}
	for i := range r.Entries {
		e := &r.Entries[i]
		until := storekit.ExpiryOf(e)
		a := l.accounts[e.Account]
		if a == nil {
			a = &account{expires: until}
			l.accounts[e.Account] = a
		}
		a.used += e.Amount
		a.expires = storekit.LaterExpiry(a.expires, until)
		h.added = append(h.added, amount{e.Account, a, e.Amount})
		l.remember(until)
	}
	l.held[r.ID] = h
}

// remember notes when there will be something to sweep.
func (l *ledger) remember(expires storekit.Expiry) {
	if expires != storekit.Never && (l.due == storekit.Never || expires < l.due) {
		l.due = expires
	}
}

// sweep removes what has expired.
func (l *ledger) sweep() {
	if !l.due.Passed(l.now) {
		return
	}
	l.due = storekit.Never
	over := func(expires storekit.Expiry) bool {
		if expires.Passed(l.now) {
			return true
		}
		l.remember(expires)
		return false
	}
	maps.DeleteFunc(l.accounts, func(_ string, a *account) bool { return over(a.expires) })
	maps.DeleteFunc(l.held, func(_ string, h *reservation) bool { return over(h.expires) })
}

// Settle implements [store.Ledger].
func (s *Store) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateActual(actual); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ledgers[tenant]
	if l == nil || l.held[id] == nil || l.held[id].expires.Passed(l.now) {
		return nil
	}
	for _, added := range l.held[id].added {
		if a := l.live(added.name, l.now); a != nil && a == added.account {
			a.used = min(a.used-added.n+actual[added.name], store.MaxAmount)
		}
	}
	delete(l.held, id)
	return nil
}

// Used implements [store.Ledger].
func (s *Store) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	used := make([]int64, len(accounts))
	l := s.ledgers[tenant]
	if l == nil {
		return used, nil
	}
	for i, name := range accounts {
		if a := l.live(name, l.now); a != nil {
			used[i] = a.used
		}
	}
	return used, nil
}
