package holdfast

import (
	"context"
	"fmt"
	"time"
)

// Ledger counts what threads and processes share: budgets and rate limits. It is
// no part of [Commit]: what it counts belongs to a tenant, not to a thread, and
// stays when threads are deleted. All its methods may be repeated after an error or
// a lost reply, and called concurrently, by several processes too: no limit is ever
// exceeded by a reservation.
//
// Time passes for a tenant's accounts when a reservation that is made says so, by
// its Now, to the millisecond. A store with a clock of its own may also forget what
// has expired by that one.
type Ledger interface {
	// Reserve adds the amount of each entry to its account, or adds nothing and
	// returns a [*LimitError] if one of them would then be above its limit: the
	// first that is. A reservation whose ID is held has been made before: nothing is
	// added again, whatever its entries.
	Reserve(ctx context.Context, r *Reservation) error
	// Settle puts the actual amounts, by account, in the place of what the
	// reservation has added, and forgets it; an account that is not named used 0,
	// and one that the reservation does not have is left alone. A limit does not
	// matter any more. An account that has expired since does not come back, and one
	// that began anew under its name is not touched. A reservation that is not held
	// has been settled before, which is no error. Returns [ErrInvalid] for an amount
	// that no account can hold.
	Settle(ctx context.Context, tenant, id string, actual map[string]int64) error
	// Used returns what each of the accounts has counted; 0 for one that nothing
	// was ever added to, or that has expired.
	Used(ctx context.Context, tenant string, accounts []string) ([]int64, error)
}

// MaxAmount is the largest amount or limit, and the most that an account counts,
// also where there is no limit: the numbers of Redis's scripts are exact up to it.
const MaxAmount int64 = 1 << 53

// Reservation asks a [Ledger] for amounts, all or none.
type Reservation struct {
	// Tenant is whose accounts they are; accounts of two tenants never meet.
	Tenant string
	// ID makes it idempotent until it is settled. It is unique in the tenant.
	ID string
	// Entries are what it asks for: one or more, each of another account.
	Entries []Entry
	// Now is the caller's clock, by which accounts expire.
	Now time.Time
}

// Entry is one amount of a [Reservation].
type Entry struct {
	// Account is a name of the caller's choice.
	Account string
	// Amount is from 0 to [MaxAmount], in a unit of the caller's choice.
	Amount int64
	// Limit is what the account may reach, up to [MaxAmount]; 0 is no limit.
	Limit int64
	// Expires is when the account is forgotten; a later one prolongs an account,
	// an earlier one changes nothing. The zero time is never, any other is between
	// 1970 and 9999. A reservation of which every entry expires is forgotten with
	// the last of them.
	Expires time.Time
}

// Ceiling is what the account may reach: the limit, or where there is none
// [MaxAmount].
func (e *Entry) Ceiling() int64 {
	if e.Limit == 0 {
		return MaxAmount
	}
	return e.Limit
}

// Check returns a [*LimitError] if the entry would take an account that has
// counted used above its limit.
func (e *Entry) Check(used int64) error {
	if limit := e.Ceiling(); e.Amount > limit-used {
		return &LimitError{Account: e.Account, Used: used, Amount: e.Amount, Limit: limit}
	}
	return nil
}

// LimitError says which limit a [Reservation] would exceed.
type LimitError struct {
	Account string
	// Used is what the account has counted, Amount what was asked for.
	Used, Amount, Limit int64
}

// Error names the account and the numbers.
func (e *LimitError) Error() string {
	return fmt.Sprintf("account %s: %d used, %d more would exceed the limit of %d", e.Account, e.Used, e.Amount, e.Limit)
}

// Validate returns [ErrInvalid] for a reservation that no ledger can hold. Every
// ledger calls it first.
func (r *Reservation) Validate() error {
	if r.ID == "" || len(r.Entries) == 0 {
		return fmt.Errorf("a reservation needs an id and an entry: %w", ErrInvalid)
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
