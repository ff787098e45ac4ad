package redisstore

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// Reserve implements [store.Ledger].
func (s *Store) Reserve(ctx context.Context, r *store.Reservation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return err
	}
	keys := []string{s.keys.reservation(r.Tenant, r.ID), s.keys.clock(r.Tenant)}
	args := []any{r.Now.UnixMilli(), int64(storekit.ReservationExpiry(r))}
	for i := range r.Entries {
		e := &r.Entries[i]
		keys = append(keys, s.keys.account(r.Tenant, e.Account))
		args = append(args, url.QueryEscape(e.Account), e.Amount, e.Ceiling(), int64(storekit.ExpiryOf(e)))
	}
	refused, err := s.replicas.script(ctx, s.scripts.reserve, keys, args...).Int64Slice()
	if err != nil {
		return failed("make reservation "+strconv.Quote(r.ID), err)
	}
	return refusedEntry(r, refused)
}

// refusedEntry turns the script's reply into an error.
func refusedEntry(r *store.Reservation, reply []int64) error {
	if len(reply) != 2 || reply[0] < 0 || reply[0] > int64(len(r.Entries)) {
		return fmt.Errorf("make reservation %q: redis answers %v: %w", r.ID, reply, errDamaged)
	}
	if reply[0] == 0 {
		return nil
	}
	e := &r.Entries[reply[0]-1]
	return &store.LimitError{Account: e.Account, Used: reply[1], Amount: e.Amount, Limit: e.Ceiling()}
}

// Settle implements [store.Ledger].
func (s *Store) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateActual(actual); err != nil {
		return err
	}
	args := []any{s.keys.account(tenant, ""), store.MaxAmount}
	for _, account := range slices.Sorted(maps.Keys(actual)) { // so that a repeated request is the same
		args = append(args, url.QueryEscape(account), actual[account])
	}
	keys := []string{s.keys.reservation(tenant, id), s.keys.clock(tenant)}
	if _, err := s.replicas.write(ctx, s.scripts.settle, keys, args...); err != nil {
		return failed("settle reservation "+strconv.Quote(id), err)
	}
	return nil
}

// Used implements [store.Ledger].
func (s *Store) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	keys := make([]string, 1, 1+len(accounts))
	keys[0] = s.keys.clock(tenant)
	for _, a := range accounts {
		keys = append(keys, s.keys.account(tenant, a))
	}
	used, err := s.scripts.used.Run(ctx, s.client, keys).Int64Slice()
	if err != nil {
		return nil, failed("read accounts", err)
	}
	return used, nil
}
