package filestore

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// The Ledger role. Reservations and settlements share batches with commits.

// The sections of a tenant in the ledger space. Their numbers are stored and never
// change. Times are in milliseconds since 1970; package expiry says when they are over.
//
//	clock     –                       the time of the last reservation
//	accounts  account                 what it has counted, its number, when it expires
//	held      reservation             when it expires, and what it has added to which accounts
//	due       time, section, name     nothing; the accounts and reservations that expire
//
// The number tells an account from a later one of the same name.
const (
	ledgerClock byte = 1 + iota
	ledgerAccounts
	ledgerHeld
	ledgerDue
)

func ledgerKey(tenant string, section byte) []byte {
	return append(appendName(append(make([]byte, 0, 64), spaceLedger), tenant), section)
}

func ledgerNameKey(tenant string, section byte, name string) []byte {
	return append(ledgerKey(tenant, section), name...)
}

func dueKey(tenant string, expires storekit.Expiry, section byte, name string) []byte {
	b := binary.BigEndian.AppendUint64(ledgerKey(tenant, ledgerDue), uint64(expires))
	return append(append(b, section), name...)
}

// ledgerAccount is an account as it is stored.
type ledgerAccount struct {
	used    int64
	number  uint64
	expires storekit.Expiry
}

// heldReservation is a reservation as it is stored.
type heldReservation struct {
	expires storekit.Expiry
	added   []addedAmount
}

// addedAmount is what a reservation has added to an account.
type addedAmount struct {
	account string
	amount  int64
	number  uint64 // the account's
}

// Reserve implements [store.Ledger].
func (s *Store) Reserve(ctx context.Context, r *store.Reservation) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.committer.submit(ctx, &reserve{r: r, now: r.Now.UnixMilli()})
}

// Settle implements [store.Ledger].
func (s *Store) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if err := store.ValidateActual(actual); err != nil {
		return err
	}
	return s.committer.submit(ctx, &settlement{tenant: tenant, id: id, actual: actual})
}

// Used implements [store.Ledger].
func (s *Store) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	used := make([]int64, len(accounts))
	err := s.committer.view(ctx, func(v view) error {
		now, err := v.ledgerClock(tenant)
		if err != nil {
			return err
		}
		for i, name := range accounts {
			a, live, err := v.account(tenant, name, now)
			if err != nil {
				return err
			}
			if live {
				used[i] = a.used
			}
		}
		return nil
	})
	return used, err
}

// reserve is a reservation on its way.
type reserve struct {
	r   *store.Reservation
	now int64
}

func (o *reserve) bytes() int             { return 128 * (1 + len(o.r.Entries)) }
func (o *reserve) tell(*storekit.Waiters) {}

func (o *reserve) check(t *txn) error {
	h, err := t.held(o.r.Tenant, o.r.ID)
	if err != nil {
		return err
	}
	if h != nil && !h.expires.Passed(o.now) {
		return errAlready
	}
	for i := range o.r.Entries {
		e, used := &o.r.Entries[i], int64(0)
		a, live, err := t.account(o.r.Tenant, e.Account, o.now)
		if err != nil {
			return err
		}
		if live {
			used = a.used
		}
		if err := e.Check(used); err != nil {
			return err
		}
	}
	return nil
}

func (o *reserve) write(t *txn) error {
	tenant := o.r.Tenant
	if err := t.set(ledgerKey(tenant, ledgerClock), binary.AppendVarint(nil, o.now)); err != nil {
		return err
	}
	// More than this one adds, so that what has expired does not pile up.
	if err := t.sweepLedger(tenant, o.now, len(o.r.Entries)+8); err != nil {
		return err
	}
	if err := t.dropHeld(tenant, o.r.ID); err != nil { // one that has expired
		return err
	}
	h := &heldReservation{expires: storekit.ReservationExpiry(o.r)}
	for i := range o.r.Entries {
		e := &o.r.Entries[i]
		number, err := o.add(t, e)
		if err != nil {
			return err
		}
		h.added = append(h.added, addedAmount{e.Account, e.Amount, number})
	}
	return t.putDue(tenant, ledgerHeld, o.r.ID, h.expires, h.encode())
}

// add adds an entry to its account, and returns the account's number.
func (o *reserve) add(t *txn, e *store.Entry) (uint64, error) {
	tenant, until := o.r.Tenant, storekit.ExpiryOf(e)
	a, live, err := t.account(tenant, e.Account, o.now)
	if err != nil {
		return 0, err
	}
	if err := t.dropDue(tenant, ledgerAccounts, e.Account, a.expires); err != nil {
		return 0, err
	}
	if !live {
		t.numbers.account++
		a = ledgerAccount{number: t.numbers.account, expires: until}
	}
	a.used += e.Amount
	a.expires = storekit.LaterExpiry(a.expires, until)
	return a.number, t.putDue(tenant, ledgerAccounts, e.Account, a.expires, a.encode())
}

// settlement is the settlement of a reservation on its way.
type settlement struct {
	tenant, id string
	actual     map[string]int64
	held       *heldReservation
	now        int64
}

func (o *settlement) bytes() int             { return 128 * (1 + len(o.actual)) }
func (o *settlement) tell(*storekit.Waiters) {}

func (o *settlement) check(t *txn) (err error) {
	if o.now, err = t.ledgerClock(o.tenant); err != nil {
		return err
	}
	if o.held, err = t.held(o.tenant, o.id); err != nil {
		return err
	}
	if o.held == nil || o.held.expires.Passed(o.now) {
		return errAlready
	}
	return nil
}

func (o *settlement) write(t *txn) error {
	for _, added := range o.held.added {
		a, live, err := t.account(o.tenant, added.account, o.now)
		if err != nil {
			return err
		}
		if !live || a.number != added.number {
			continue
		}
		a.used = min(a.used-added.amount+o.actual[added.account], store.MaxAmount)
		if err := t.set(ledgerNameKey(o.tenant, ledgerAccounts, added.account), a.encode()); err != nil {
			return err
		}
	}
	return t.dropHeld(o.tenant, o.id)
}

// ledgerClock is the time of the tenant's last reservation.
func (v view) ledgerClock(tenant string) (now int64, err error) {
	_, err = v.with(ledgerKey(tenant, ledgerClock), func(value []byte) error {
		r := reader{b: value}
		now = r.varint()
		return r.err
	})
	return now, err
}

// account reads an account, and whether it is there at the time; it may be zero, or
// one that has expired, if it is not.
func (v view) account(tenant, name string, now int64) (a ledgerAccount, live bool, err error) {
	live, err = v.with(ledgerNameKey(tenant, ledgerAccounts, name), func(value []byte) error {
		r := reader{b: value}
		a = ledgerAccount{used: int64(r.uvarint()), number: r.uvarint(), expires: storekit.Expiry(r.varint())}
		return r.err
	})
	return a, live && !a.expires.Passed(now), err
}

func (a *ledgerAccount) encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 24), uint64(a.used))
	return binary.AppendVarint(binary.AppendUvarint(b, a.number), int64(a.expires))
}

// held reads a reservation; nil if there is none.
func (v view) held(tenant, id string) (h *heldReservation, err error) {
	_, err = v.with(ledgerNameKey(tenant, ledgerHeld, id), func(value []byte) error {
		r := reader{b: value}
		h = &heldReservation{expires: storekit.Expiry(r.varint())}
		for len(r.b) > 0 {
			h.added = append(h.added, addedAmount{account: r.name(), amount: int64(r.uvarint()), number: r.uvarint()})
		}
		return r.err
	})
	return h, err
}

func (h *heldReservation) encode() []byte {
	b := binary.AppendVarint(nil, int64(h.expires))
	for _, added := range h.added {
		b = binary.AppendUvarint(appendName(b, added.account), uint64(added.amount))
		b = binary.AppendUvarint(b, added.number)
	}
	return b
}

// dropHeld forgets a reservation, if it is held.
func (t *txn) dropHeld(tenant, id string) error {
	h, err := t.held(tenant, id)
	if h == nil || err != nil {
		return err
	}
	if err := t.dropDue(tenant, ledgerHeld, id, h.expires); err != nil {
		return err
	}
	return t.remove(ledgerNameKey(tenant, ledgerHeld, id))
}

// putDue writes an account or a reservation, and when it expires into the index.
func (t *txn) putDue(tenant string, section byte, name string, expires storekit.Expiry, value []byte) error {
	if err := t.set(ledgerNameKey(tenant, section, name), value); err != nil {
		return err
	}
	if expires == storekit.Never {
		return nil
	}
	return t.set(dueKey(tenant, expires, section, name), nil)
}

// dropDue takes something out of the index, if it is there.
func (t *txn) dropDue(tenant string, section byte, name string, expires storekit.Expiry) error {
	if expires == storekit.Never {
		return nil
	}
	return t.remove(dueKey(tenant, expires, section, name))
}

// sweepLedger removes some of what has expired, the oldest first.
func (t *txn) sweepLedger(tenant string, now int64, limit int) error {
	var doomed [][]byte
	prefix := ledgerKey(tenant, ledgerDue)
	err := t.ascend(prefix, prefix, func(k, _ []byte) (bool, error) {
		due := k[len(prefix):]
		if len(doomed) >= 2*limit || len(due) < 9 || !storekit.Expiry(binary.BigEndian.Uint64(due)).Passed(now) {
			return false, nil
		}
		doomed = append(doomed, bytes.Clone(k), ledgerNameKey(tenant, due[8], string(due[9:])))
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, k := range doomed {
		if err := t.remove(k); err != nil {
			return err
		}
	}
	return nil
}
