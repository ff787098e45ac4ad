package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"

	bolt "go.etcd.io/bbolt"
)

// TestLedgerDoesNotPileUp: what has expired goes away as new things come, settled
// or not, and whether or not its account was ever touched again.
func TestLedgerDoesNotPileUp(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	reserve := func(minute, n int) {
		t.Helper()
		end := now.Add(time.Minute)
		r := &store.Reservation{Tenant: "acme", ID: fmt.Sprintf("r%d/%d", minute, n), Now: now, Entries: []store.Entry{
			{Account: fmt.Sprintf("minute %d", minute), Amount: 1, Expires: end},
			{Account: fmt.Sprintf("thread %d", n), Amount: 1, Expires: end},
		}}
		if err := s.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			if err := s.Settle(t.Context(), "acme", r.ID, map[string]int64{r.Entries[0].Account: 2}); err != nil {
				t.Fatal(err)
			}
		}
	}
	most := 0
	for minute := range 20 {
		for n := range 10 {
			reserve(minute, n)
		}
		if minute >= 2 {
			most = max(most, keysOfLedger(t, s))
		}
		now = now.Add(time.Minute)
	}
	// Of one minute: 11 accounts and 5 reservations, each with when it is due, and
	// the clock.
	if minute := 2*(11+5) + 1; most > minute {
		t.Errorf("the ledger had %d keys, a minute has %d", most, minute)
	}
	now = now.Add(time.Hour)
	for n := range 10 {
		reserve(100, n)
	}
	now = now.Add(time.Hour)
	reserve(200, 0)
	reserve(200, 2)
	reserve(200, 4)
	if left := keysOfLedger(t, s); left != 2*4+1 {
		t.Errorf("%d keys are left in the ledger, want 4 accounts and the clock", left)
	}
}

func keysOfLedger(t *testing.T, s *Store) int {
	t.Helper()
	n := 0
	if err := s.view(t.Context(), func(txn *txn) error { n = txn.ledger.Stats().KeyN; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOpenWithoutLedger: files of earlier versions have no ledger, and get one.
func TestOpenWithoutLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	s := openAt(t, path)
	commitTo(t, s, "t")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(bucketLedger)) })
	s = openAt(t, path)
	r := &store.Reservation{Tenant: "acme", ID: "r", Entries: []store.Entry{{Account: "a", Amount: 1}}, Now: time.Now()}
	if err := s.Reserve(t.Context(), r); err != nil {
		t.Error(err)
	}
	if _, err := s.Head(t.Context(), store.ThreadKey{Tenant: "acme", Thread: "t"}); err != nil {
		t.Errorf("Head: %v", err)
	}
}

// TestReservationsShareATransaction: reservations that come together are judged one
// after the other, and written together.
func TestReservationsShareATransaction(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "holdfast.db"))
	var batch []*request
	for n := range 5 {
		r := &store.Reservation{Tenant: "acme", ID: fmt.Sprint(n % 4), Entries: []store.Entry{{Account: "a", Amount: 4, Limit: 10}}, Now: time.Now()}
		batch = append(batch, &request{op: &reserve{r: r, now: r.Now.UnixMilli()}})
	}
	before := txid(t, s)
	results, err := s.writeBatch(batch, false)
	if err != nil {
		t.Fatal(err)
	}
	if wrote := txid(t, s) - before; wrote != 1 {
		t.Errorf("the reservations took %d transactions", wrote)
	}
	for n, want := range []struct{ made, refused, again bool }{{made: true}, {made: true}, {refused: true}, {refused: true}, {again: true}} {
		var limit *store.LimitError
		if got := results[n]; (got == nil) != want.made || errors.As(got, &limit) != want.refused || errors.Is(got, errAlready) != want.again {
			t.Errorf("reservation %d: %v, want %+v", n, got, want)
		}
	}
	used, err := s.Used(t.Context(), "acme", []string{"a"})
	if err != nil || used[0] != 8 {
		t.Errorf("%d, %v was used, want 8", used, err)
	}
}
