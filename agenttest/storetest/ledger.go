package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The Ledger role: limits, settling, and what expires. The tests' time is far ahead of
// the clock, so that it passes only when they say so.

// ledgerTests test [store.Ledger].
func ledgerTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"amounts add up to the limit":            testLimit,
		"all entries or none":                    testAllOrNone,
		"a reservation is made once":             testReserveAgain,
		"settled with what was used":             testSettle,
		"settled twice":                          testSettleAgain,
		"settled above the limit":                testSettleAbove,
		"accounts expire":                        testAccountExpires,
		"accounts are prolonged":                 testProlonged,
		"a reservation expires":                  testReservationExpires,
		"an expired account does not come back":  testNotBack,
		"a new account of the name is another":   testSameName,
		"large amounts are exact":                testLargeAmounts,
		"odd names of accounts and reservations": testOddAccounts,
		"threads and accounts are apart":         testLedgerAndThreads,
		"invalid reservations":                   testInvalidReservations,
		"cancelled":                              testLedgerCancelled,
		"a limit holds against many at once":     testLimitParallel,
		"one of many makes the reservation":      testReserveParallel,
		"many settle while many reserve":         testSettleParallel,
	}
}

// ledgerStart is when ledger tests begin, ahead of the clock of any store.
func ledgerStart() time.Time { return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }

// books is the ledger of the tenant acme, with the current time.
type books struct {
	t   *testing.T
	s   store.Store
	now time.Time
}

func openBooks(t *testing.T, s store.Store) *books { return &books{t, s, ledgerStart()} }

// in returns the time that is d from now.
func (b *books) in(d time.Duration) time.Time { return b.now.Add(d) }

// try makes a reservation now.
func (b *books) try(id string, entries ...store.Entry) error {
	return b.s.Reserve(b.t.Context(), &store.Reservation{Tenant: "acme", ID: id, Entries: entries, Now: b.now})
}

// reserve makes a reservation that must succeed.
func (b *books) reserve(id string, entries ...store.Entry) {
	b.t.Helper()
	if err := b.try(id, entries...); err != nil {
		b.t.Fatalf("Reserve(%.40q): %v", id, err)
	}
}

// refuse makes a reservation that must exceed a limit.
func (b *books) refuse(id string, want store.LimitError, entries ...store.Entry) {
	b.t.Helper()
	var limit *store.LimitError
	if err := b.try(id, entries...); !errors.As(err, &limit) || *limit != want {
		b.t.Errorf("Reserve(%.40q): %v, want %v", id, err, &want)
	}
}

// settle settles a reservation, which must succeed.
func (b *books) settle(id string, actual map[string]int64) {
	b.t.Helper()
	if err := b.s.Settle(b.t.Context(), "acme", id, actual); err != nil {
		b.t.Fatalf("Settle(%.40q): %v", id, err)
	}
}

// pass lets time pass, and makes that known by a reservation of nothing.
func (b *books) pass(d time.Duration) {
	b.t.Helper()
	b.now = b.now.Add(d)
	b.reserve(fmt.Sprintf("tick-%016x", rand.Uint64()), store.Entry{Account: "tick", Expires: b.in(time.Second)})
}

// used checks what the accounts a, b, c… have counted.
func (b *books) used(want ...int64) {
	b.t.Helper()
	names := strings.Split("abcdefgh", "")[:len(want)]
	got := must(b.s.Used(b.t.Context(), "acme", names))(b.t)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("accounts %v have counted %d, want %d", names, got, want)
	}
}

func testLimit(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.used(0, 0)
	b.reserve("1", store.Entry{Account: "a", Amount: 4, Limit: 10})
	b.reserve("2", store.Entry{Account: "a", Amount: 6, Limit: 10})
	b.reserve("3", store.Entry{Account: "a", Limit: 10})
	b.refuse("4", store.LimitError{Account: "a", Used: 10, Amount: 1, Limit: 10},
		store.Entry{Account: "a", Amount: 1, Limit: 10})
	b.used(10, 0)
	// The limit is the caller's each time, and may be none.
	b.reserve("5", store.Entry{Account: "a", Amount: 1, Limit: 11})
	b.reserve("6", store.Entry{Account: "a", Amount: 100})
	b.refuse("7", store.LimitError{Account: "a", Used: 111, Limit: 110}, store.Entry{Account: "a", Limit: 110})
	b.used(111, 0)
}

func testAllOrNone(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.reserve("1", store.Entry{Account: "b", Amount: 5}, store.Entry{Account: "c", Amount: 5})
	entries := []store.Entry{
		{Account: "a", Amount: 1, Expires: b.in(time.Hour)},
		{Account: "b", Amount: 2, Limit: 6},
		{Account: "c", Amount: 3, Limit: 5},
	}
	b.refuse("2", store.LimitError{Account: "b", Used: 5, Amount: 2, Limit: 6}, entries...)
	b.used(0, 5, 5)
	// A refused reservation is not held: there is nothing to settle, and it can be made.
	b.settle("2", map[string]int64{"a": 1, "b": 1, "c": 1})
	b.used(0, 5, 5)
	entries[1].Limit, entries[2].Limit = 7, 8
	b.reserve("2", entries...)
	b.used(1, 7, 8)
}

func testReserveAgain(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	e := store.Entry{Account: "a", Amount: 6, Limit: 10}
	for range 3 {
		b.reserve("1", e)
	}
	b.reserve("1", store.Entry{Account: "b", Amount: 1}) // whatever its entries
	b.used(6, 0)
	b.settle("1", map[string]int64{"a": 2})
	b.reserve("1", e)
	b.used(8, 0)
	b.refuse("2", store.LimitError{Account: "a", Used: 8, Amount: 6, Limit: 10}, e)
}

func testSettle(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.reserve("1", store.Entry{Account: "a", Amount: 10}, store.Entry{Account: "b", Amount: 10},
		store.Entry{Account: "c", Amount: 10})
	b.reserve("2", store.Entry{Account: "a", Amount: 5})
	b.settle("1", map[string]int64{"a": 3, "b": 12, "d": 7})
	b.used(8, 12, 0, 0)
	b.settle("2", nil)
	b.used(3, 12, 0, 0)
}

func testSettleAgain(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.settle("unknown", map[string]int64{"a": 3})
	b.used(0)
	b.reserve("1", store.Entry{Account: "a", Amount: 10})
	for range 3 {
		b.settle("1", map[string]int64{"a": 3})
		b.used(3)
	}
}

// testSettleAbove: what was used counts against the limit, even if it is more.
func testSettleAbove(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	e := store.Entry{Account: "a", Amount: 1, Limit: 10}
	b.reserve("1", e)
	b.settle("1", map[string]int64{"a": 15})
	b.used(15)
	b.refuse("2", store.LimitError{Account: "a", Used: 15, Amount: 1, Limit: 10}, e)
}

func testAccountExpires(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	minute := func(account string) store.Entry {
		return store.Entry{Account: account, Amount: 10, Limit: 10, Expires: b.in(time.Minute)}
	}
	b.reserve("1", minute("a"))
	b.reserve("2", minute("b"))
	b.reserve("3", store.Entry{Account: "c", Amount: 10})
	b.pass(time.Minute - time.Millisecond)
	b.refuse("4", store.LimitError{Account: "a", Used: 10, Amount: 10, Limit: 10}, minute("a"))
	b.used(10, 10, 10)
	b.now = b.in(time.Millisecond)
	b.reserve("4", minute("a"))
	b.used(10, 0, 10)
	b.pass(1000 * time.Hour)
	b.used(0, 0, 10)
	// An account that has expired before it begins never exists.
	b.reserve("5", store.Entry{Account: "a", Amount: 10, Limit: 10, Expires: b.now})
	b.used(0, 0, 10)
}

func testProlonged(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	for i, d := range []time.Duration{time.Minute, time.Hour, time.Second, -time.Second} {
		b.reserve(fmt.Sprint("a", i), store.Entry{Account: "a", Amount: 1, Expires: b.in(d)})
		b.reserve(fmt.Sprint("b", i), store.Entry{Account: "b", Amount: 1, Expires: b.in(d)})
	}
	b.reserve("b", store.Entry{Account: "b", Amount: 1})
	b.reserve("c1", store.Entry{Account: "c", Amount: 1})
	b.reserve("c2", store.Entry{Account: "c", Amount: 1, Expires: b.in(time.Second)})
	b.pass(time.Hour - time.Millisecond)
	b.used(4, 5, 2)
	b.pass(time.Millisecond)
	b.used(0, 5, 2)
}

func testReservationExpires(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	entries := func() []store.Entry {
		return []store.Entry{
			{Account: "a", Amount: 1, Expires: b.in(time.Hour)},
			{Account: "b", Amount: 1, Expires: b.in(time.Minute)},
		}
	}
	b.reserve("1", entries()...)
	b.reserve("keep", store.Entry{Account: "a",
		Expires: b.in(1000 * time.Hour)}) // the account outlives the reservation
	forever := append(entries(), store.Entry{Account: "c", Amount: 1})
	b.reserve("2", forever...)
	b.pass(time.Hour - time.Millisecond)
	b.reserve("1", entries()...)
	b.used(2, 0, 1)
	b.pass(time.Millisecond)
	b.settle("1", nil) // forgotten
	b.used(2, 0, 1)
	b.reserve("1", entries()...)
	b.used(3, 1, 1)
	b.pass(1000 * time.Hour)
	b.reserve("2", forever...) // held for as long as its longest-lived account
	b.settle("2", nil)
	b.used(0, 0, 0)
}

func testNotBack(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.reserve("1", store.Entry{Account: "a", Amount: 1, Expires: b.in(time.Minute)},
		store.Entry{Account: "b", Amount: 1})
	b.pass(time.Minute)
	b.settle("1", map[string]int64{"a": 5, "b": 5})
	b.used(0, 5)
	b.pass(time.Minute)
	b.used(0, 5)
	b.reserve("2", store.Entry{Account: "a", Amount: 3, Limit: 3})
	b.used(3, 5)
}

// testSameName: to settle what was reserved in a minute that is over subtracts nothing
// from the account of the next minute, although it has the same name.
func testSameName(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	minute := func(n int64) store.Entry {
		return store.Entry{Account: "a", Amount: n, Expires: b.in(time.Minute)}
	}
	b.reserve("1", minute(100), store.Entry{Account: "b", Amount: 100})
	b.now = b.in(time.Minute)
	b.reserve("2", minute(50), store.Entry{Account: "b", Amount: 50})
	b.settle("1", map[string]int64{"a": 80, "b": 80})
	b.used(50, 130)
	b.settle("2", map[string]int64{"a": 40, "b": 40})
	b.used(40, 120)
}

func testLargeAmounts(t *testing.T, s store.Store) {
	const most = store.MaxAmount
	b := openBooks(t, s)
	b.reserve("1", store.Entry{Account: "a", Amount: most - 1, Limit: most},
		store.Entry{Account: "b", Amount: most - 2})
	b.reserve("2", store.Entry{Account: "b", Amount: 1, Limit: most - 1})
	b.used(most-1, most-1)
	b.refuse("3", store.LimitError{Account: "a", Used: most - 1, Amount: 2, Limit: most},
		store.Entry{Account: "a", Amount: 2, Limit: most})
	b.refuse("3", store.LimitError{Account: "a", Used: most - 1, Amount: most, Limit: most},
		store.Entry{Account: "a", Amount: most})
	b.reserve("3", store.Entry{Account: "a", Amount: 1})
	b.refuse("4", store.LimitError{Account: "b", Used: most - 1, Amount: 1, Limit: most - 1},
		store.Entry{Account: "b", Amount: 1, Limit: most - 1})
	b.settle("3", map[string]int64{"a": most}) // no account counts further than this
	b.used(most, most-1)
	b.settle("1", map[string]int64{"a": most - 3, "b": 0})
	b.used(most-2, 1)
}

func testOddAccounts(t *testing.T, s store.Store) {
	names := oddNames()
	tenants := append([]string{""}, names[1:]...)
	reservation := func(i int) *store.Reservation {
		return &store.Reservation{
			Tenant: tenants[i], ID: names[i], Now: ledgerStart(),
			Entries: []store.Entry{{Account: names[i], Amount: int64(i + 1)}, {Account: names[i] + "-", Amount: 1000}},
		}
	}
	for i := range names[:len(names)-1] { // the last one is as long as a name can be
		for range 2 {
			if err := s.Reserve(t.Context(), reservation(i)); err != nil {
				t.Fatalf("tenant %.40q: %v", tenants[i], err)
			}
		}
	}
	for i, tenant := range tenants[:len(tenants)-1] {
		for j, used := range must(s.Used(t.Context(), tenant, names))(t) {
			if want := int64(i + 1); (i == j) != (used == want) || i != j && used != 0 {
				t.Errorf("tenant %.40q has counted %d of account %.40q", tenant, used, names[j])
			}
		}
		if err := s.Settle(t.Context(), tenant, names[i], map[string]int64{names[i] + "-": 7}); err != nil {
			t.Fatal(err)
		}
		used := must(s.Used(t.Context(), tenant, []string{names[i], names[i] + "-"}))(t)
		if fmt.Sprint(used) != "[0 7]" {
			t.Errorf("tenant %.40q has counted %d after it was settled", tenant, used)
		}
	}
	long := names[len(names)-1]
	r := &store.Reservation{
		Tenant:  long,
		ID:      long,
		Now:     ledgerStart(),
		Entries: []store.Entry{{Account: long, Amount: 1, Expires: ledgerStart().Add(time.Hour)}},
	}
	if err := s.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	expect(t, "an account with a long name", fmt.Sprint(must(s.Used(t.Context(), long, []string{long}))(t)), "[1]")
}

// testLedgerAndThreads: what is counted is not part of a thread, whatever the names.
func testLedgerAndThreads(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.reserve("a", store.Entry{Account: "a", Amount: 1}, store.Entry{Account: "b", Amount: 2, Expires: b.in(time.Hour)})
	for next, more := "", true; more; more = next != "" {
		heads, after, err := s.Walk(t.Context(), next, 1000)
		if err != nil || len(heads) != 0 {
			t.Fatalf("Walk finds %v, %q, %v beside no thread", heads, after, err)
		}
		next = after
	}
	_, err := s.Head(t.Context(), key("a"))
	wantError(t, err, store.ErrNotFound)
	th := create(t, s, key("a"), func(c *store.Commit) { fillWith(c, "mark") })
	before := fmt.Sprint(must(s.Size(t.Context(), th.key))(t))
	b.reserve("again", store.Entry{Account: "a", Amount: 1})
	expect(t, "the size of the thread", fmt.Sprint(must(s.Size(t.Context(), th.key))(t)), before)
	if err := s.Delete(t.Context(), th.key, th.head.Position()); err != nil {
		t.Fatal(err)
	}
	b.used(2, 2)
	b.settle("a", nil)
	b.used(1, 0)
}

func testInvalidReservations(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	good := store.Entry{Account: "a", Amount: 1}
	for name, entries := range map[string][]store.Entry{
		"no entry":         {},
		"no account":       {good, {Amount: 1}},
		"an account twice": {good, good},
		"less than 0":      {good, {Account: "b", Amount: -1}},
		"too much":         {good, {Account: "b", Amount: store.MaxAmount + 1}},
		"a long account":   {good, {Account: strings.Repeat("x", store.MaxName+1)}},
	} {
		if err := b.try("1", entries...); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: error is %v, want ErrInvalid", name, err)
		}
	}
	wantError(t, b.try("", good), store.ErrInvalid)
	b.used(0)
	b.reserve("1", good)
	for _, n := range []int64{-1, store.MaxAmount + 1} {
		wantError(t, s.Settle(t.Context(), "acme", "1", map[string]int64{"a": n}), store.ErrInvalid)
	}
	b.used(1)
	expect(t, "no accounts", len(must(s.Used(t.Context(), "acme", nil))(t)), 0)
}

func testLedgerCancelled(t *testing.T, s store.Store) {
	b := openBooks(t, s)
	b.reserve("1", store.Entry{Account: "a", Amount: 5})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &store.Reservation{Tenant: "acme", ID: "2", Entries: []store.Entry{{Account: "a", Amount: 1}}, Now: b.now}
	wantError(t, s.Reserve(ctx, r), context.Canceled)
	wantError(t, s.Settle(ctx, "acme", "1", nil), context.Canceled)
	_, err := s.Used(ctx, "acme", []string{"a"})
	wantError(t, err, context.Canceled)
	b.used(5)
}
