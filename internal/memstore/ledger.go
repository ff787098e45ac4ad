package memstore

import (
	"context"
	"maps"

	"github.com/holdfast-agents/holdfast"
)

// ledger is what one tenant has counted. Times are in milliseconds since 1970; what
// expires at 0 never does.
type ledger struct {
	now      int64 // of the last reservation
	due      int64 // nothing expires before; 0 if nothing expires at all
	accounts map[string]*account
	held     map[string]*reservation
}

type account struct{ used, expires int64 }

// reservation is what is not settled yet.
type reservation struct {
	added   []amount
	expires int64
}

// amount is what a reservation has added to an account. The pointer tells the
// account from one that has begun anew since, under the same name.
type amount struct {
	name    string
	account *account
	n       int64
}

func gone(expires, now int64) bool { return expires != 0 && expires <= now }

// later returns the later one of two times at which something expires.
func later(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// expiry is when the entry's account expires.
func expiry(e *holdfast.Entry) int64 {
	if e.Expires.IsZero() {
		return 0
	}
	return e.Expires.UnixMilli()
}

// live returns the account, or nil if there is none at the time.
func (l *ledger) live(name string, now int64) *account {
	if a := l.accounts[name]; a != nil && !gone(a.expires, now) {
		return a
	}
	return nil
}

// Reserve implements [holdfast.Ledger].
func (s *Store) Reserve(ctx context.Context, r *holdfast.Reservation) error {
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
	if h := l.held[r.ID]; h != nil && !gone(h.expires, now) {
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

// add makes a reservation that every account can take, after sweep.
func (l *ledger) add(r *holdfast.Reservation) {
	h := &reservation{expires: expiry(&r.Entries[0])}
	for i := range r.Entries {
		e := &r.Entries[i]
		until := expiry(e)
		a := l.accounts[e.Account]
		if a == nil {
			a = &account{expires: until}
			l.accounts[e.Account] = a
		}
		a.used += e.Amount
		a.expires = later(a.expires, until)
		h.added = append(h.added, amount{e.Account, a, e.Amount})
		h.expires = later(h.expires, until)
		l.remember(until)
	}
	l.held[r.ID] = h
}

// remember notes when there is something to sweep.
func (l *ledger) remember(expires int64) {
	if expires != 0 && (l.due == 0 || expires < l.due) {
		l.due = expires
	}
}

// sweep removes what has expired, if there may be any.
func (l *ledger) sweep() {
	if !gone(l.due, l.now) {
		return
	}
	l.due = 0
	over := func(expires int64) bool {
		if gone(expires, l.now) {
			return true
		}
		l.remember(expires)
		return false
	}
	maps.DeleteFunc(l.accounts, func(_ string, a *account) bool { return over(a.expires) })
	maps.DeleteFunc(l.held, func(_ string, h *reservation) bool { return over(h.expires) })
}

// Settle implements [holdfast.Ledger].
func (s *Store) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := holdfast.ValidateActual(actual); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ledgers[tenant]
	if l == nil || l.held[id] == nil || gone(l.held[id].expires, l.now) {
		return nil
	}
	for _, added := range l.held[id].added {
		if a := l.live(added.name, l.now); a != nil && a == added.account {
			a.used = min(a.used-added.n+actual[added.name], holdfast.MaxAmount)
		}
	}
	delete(l.held, id)
	return nil
}

// Used implements [holdfast.Ledger].
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
