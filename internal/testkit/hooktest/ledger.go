package hooktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// ErrNoStore is what a [Failing] ledger fails with.
var ErrNoStore = errors.New("nobody answers")

// Failing is a ledger whose store does not answer for so many calls of each method, or
// never if the number is negative.
type Failing struct {
	store.Ledger
	Reserves, Settles, Reads int
}

func fails(left *int) bool {
	if *left > 0 {
		*left--
		return true
	}
	return *left < 0
}

// Reserve fails, or reserves.
func (f *Failing) Reserve(ctx context.Context, r *store.Reservation) error {
	if fails(&f.Reserves) {
		return ErrNoStore
	}
	return f.Ledger.Reserve(ctx, r)
}

// Settle fails, or settles.
func (f *Failing) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if fails(&f.Settles) {
		return ErrNoStore
	}
	return f.Ledger.Settle(ctx, tenant, id, actual)
}

// Used fails, or reads.
func (f *Failing) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	if fails(&f.Reads) {
		return nil, ErrNoStore
	}
	return f.Ledger.Used(ctx, tenant, accounts)
}

// Slow is a ledger whose reservations reach the store after a pause.
type Slow struct {
	store.Ledger
	Pause time.Duration
}

// Reserve waits, and reserves.
func (s *Slow) Reserve(ctx context.Context, r *store.Reservation) error {
	wait.Pass(s.Pause)
	return s.Ledger.Reserve(ctx, r)
}
