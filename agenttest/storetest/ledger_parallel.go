package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// testLimitParallel: of many reservations at the same time, exactly as many are made as
// fit in each of the accounts.
func testLimitParallel(t *testing.T, s store.Store) {
	const many, amount, limit = 64, 3, 100
	b := openBooks(t, s)
	var made atomic.Int64
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			err := b.try(fmt.Sprint(i), store.Entry{Account: "a", Amount: amount},
				store.Entry{Account: "b", Amount: amount, Limit: limit, Expires: b.in(time.Hour)})
			var refused *store.LimitError
			switch {
			case err == nil:
				made.Add(1)
			case !errors.As(err, &refused):
				t.Errorf("Reserve: %v", err)
			case refused.Used+amount <= limit:
				t.Errorf("refused although there was room: %v", err)
			}
		})
	}
	wg.Wait()
	expect(t, "reservations", int(made.Load()), limit/amount)
	b.used(limit/amount*amount, limit/amount*amount)
}

func testReserveParallel(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if err := b.try("1", store.Entry{Account: "a", Amount: 7, Limit: 7}); err != nil {
				t.Errorf("Reserve: %v", err)
			}
		})
	}
	wg.Wait()
	b.used(7)
}

func testSettleParallel(t *testing.T, s store.Store) {
	const many = 32
	b := openBooks(t, s)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			id := fmt.Sprint(i)
			if err := b.try(id, store.Entry{Account: "a", Amount: 10},
				store.Entry{Account: "b", Amount: 1}); err != nil {
				t.Errorf("Reserve: %v", err)
			}
			for range 2 {
				wg.Go(func() {
					if err := s.Settle(t.Context(), "acme", id, map[string]int64{"a": 3}); err != nil {
						t.Errorf("Settle: %v", err)
					}
				})
			}
		})
	}
	wg.Wait()
	b.used(3*many, 0)
}
