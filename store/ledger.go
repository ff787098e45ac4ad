package store

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// The ledger's contract and its vocabulary: reservations, entries, limits, and the checks
// that hold for every store.

// Ledger counts what threads and processes share: budgets and rate limits. It is
// not part of [Commit], because what it counts belongs to a tenant, not to a thread,
// and remains when threads are deleted. Any method may be repeated after an error or
// a lost reply, and called concurrently, even by several processes: a reservation
// never takes an account above its limit.
//
// Time passes for a tenant's accounts only when a reservation is made: its Now, to
// the millisecond, is the time. A store with a clock of its own may also use that
// one to forget what has expired.
type Ledger interface {
	// Reserve adds the amount of each entry to its account. If that would take an
	// account above its limit, it adds nothing and returns a [*LimitError] for the
	// first such entry. If a reservation with this ID is held, it has been made
	// before, and nothing is added again, whatever its entries.
	Reserve(ctx context.Context, r *Reservation) error
	// Settle replaces what the reservation has added with the actual amounts, by
	// account, and forgets the reservation. An account that is not named used 0; one
	// that the reservation does not have is left alone. Limits no longer apply. An
	// account that has expired since does not come back, and a new account of the
	// same name is not touched. A reservation that is not held has been settled
	// before, which is not an error. Settle returns [ErrInvalid] for an amount that
	// no account can hold.
	Settle(ctx context.Context, tenant, id string, actual map[string]int64) error
	// Used returns what each account has counted; 0 for one that has expired or that
	// nothing was ever added to.
	Used(ctx context.Context, tenant string, accounts []string) ([]int64, error)
}

// MaxAmount is the largest amount and the largest limit. No account counts beyond
// it, even without a limit, because numbers in Redis scripts are exact only up to it.
const MaxAmount int64 = 1 << 53

// Reservation asks a [Ledger] for amounts, all or none.
type Reservation struct {
	// Tenant owns the accounts; tenants never share one.
	Tenant string
	// ID makes the reservation idempotent until it is settled. It is unique in the
	// tenant.
	ID string
	// Entries are what it asks for: one or more, each for a different account.
	Entries []Entry
	// Now is the time by the caller's clock; accounts expire by it.
	Now time.Time
}

// Entry is one amount of a [Reservation].
type Entry struct {
	// Account is a name of the caller's choice.
	Account string
	// Amount is from 0 to [MaxAmount], in a unit of the caller's choice.
	Amount int64
	// Limit is what the account may reach, up to [MaxAmount]; 0 means no limit.
	Limit int64
	// Expires is when the account is forgotten. A later time extends an existing
	// account; an earlier one changes nothing. The zero time means never; any other
	// time is between 1970 and 9999. A reservation whose entries all expire is
	// forgotten with the last of them.
	Expires time.Time
}

// Ceiling is what the account may reach: the limit or, without one, [MaxAmount].
func (e *Entry) Ceiling() int64 {
	if e.Limit == 0 {
		return MaxAmount
	}
	return e.Limit
}

// Check returns a [*LimitError] if the entry would take its account above the limit,
// given what the account has used so far.
func (e *Entry) Check(used int64) error {
	if limit := e.Ceiling(); e.Amount > limit-used {
		return &LimitError{Account: e.Account, Used: used, Amount: e.Amount, Limit: limit}
	}
	return nil
}

// LimitError says which limit a [Reservation] would exceed.
type LimitError struct {
	// Account is the account whose limit it is.
	Account string
	// Used is what the account has counted, Amount what was asked for, and Limit what
	// the account may reach, all in the caller's unit.
	Used, Amount, Limit int64
}

// Error names the account and the numbers.
func (e *LimitError) Error() string {
	return fmt.Sprintf("account %s: %d used, %d more would exceed the limit of %d", e.Account, e.Used, e.Amount,
		e.Limit)
}

// Validate returns [ErrInvalid] for a reservation that no ledger can hold. Every
// ledger calls it first.
func (r *Reservation) Validate() error {
	if r.ID == "" || len(r.Entries) == 0 {
		return fmt.Errorf("a reservation needs an id and at least one entry: %w", ErrInvalid)
	}
	names := []string{r.Tenant, r.ID}
	seen := map[string]bool{}
	for i := range r.Entries {
		e := &r.Entries[i]
		if err := e.validate(); err != nil {
			return err
		}
		if seen[e.Account] {
			return fmt.Errorf("two entries of a reservation have the account %.32q: %w", e.Account, ErrInvalid)
		}
		seen[e.Account] = true
		names = append(names, e.Account)
	}
	return validateNames(names...)
}

func (e *Entry) validate() error {
	if e.Account == "" {
		return fmt.Errorf("an entry needs an account: %w", ErrInvalid)
	}
	if err := validateAmounts(e.Account, e.Amount, e.Limit); err != nil {
		return err
	}
	if !e.Expires.IsZero() && (e.Expires.UnixMilli() <= 0 || e.Expires.UTC().Year() > 9999) {
		return fmt.Errorf("account %.32q cannot expire in the year %d: %w", e.Account, e.Expires.Year(), ErrInvalid)
	}
	return nil
}

// ValidateActual returns [ErrInvalid] for amounts that no account can hold. Every
// ledger calls it first when it settles.
func ValidateActual(actual map[string]int64) error {
	for account, amount := range actual {
		if err := validateAmounts(account, amount); err != nil {
			return err
		}
	}
	return nil
}

func validateAmounts(account string, amounts ...int64) error {
	for _, n := range amounts {
		if n < 0 || n > MaxAmount {
			return fmt.Errorf("account %.32q: %d is not from 0 to %d: %w", account, n, MaxAmount, ErrInvalid)
		}
	}
	return nil
}

type ledgerKey struct{}

// ContextWithLedger returns a context that carries the ledger of a run's store.
func ContextWithLedger(ctx context.Context, l Ledger) context.Context {
	return context.WithValue(ctx, ledgerKey{}, l)
}

// LedgerFrom returns the ledger of the run in the context. Outside a run it returns
// [holdfast.ErrNoRun].
func LedgerFrom(ctx context.Context) (Ledger, error) {
	l, _ := ctx.Value(ledgerKey{}).(Ledger)
	if l == nil {
		return nil, holdfast.ErrNoRun
	}
	return l, nil
}
