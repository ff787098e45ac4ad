package shared_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
	"github.com/holdfast-agents/holdfast/store"
)

func TestAccountName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	long := strings.Repeat("x", store.MaxName)
	for _, parts := range [][]string{
		{"rate", "a", "b"}, {"rate", "a/b"}, {"rate", "a%2Fb"}, {"rate", ""}, {"rate"}, {"rate", "💰"}, {"rate", long},
		{"rate", long + "y"}, {"rate", "b", long},
	} {
		name := shared.AccountName(parts...)
		if seen[name] || len(name) > store.MaxName-64 || !strings.HasPrefix(name, "rate") {
			t.Errorf("%.40q: %d bytes, %.40q", parts, len(name), name)
		}
		seen[name] = true
	}
	if got := shared.AccountName("budget", "run", "t/1", "r"); got != "budget/run/t%2F1/r" {
		t.Errorf("got %s", got)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 1, 2, 3, 4, time.FixedZone("east", 2*60*60)) // a Wednesday, in UTC
	for length, want := range map[time.Duration]string{
		time.Minute:        "2026-03-04T23:02:00Z 2026-03-04T23:03:00Z",
		24 * time.Hour:     "2026-03-04T00:00:00Z 2026-03-05T00:00:00Z",
		7 * 24 * time.Hour: "2026-03-02T00:00:00Z 2026-03-09T00:00:00Z",
	} {
		begin, end := shared.Window(now, length)
		if got := begin.Format(time.RFC3339) + " " + end.Format(time.RFC3339); got != want {
			t.Errorf("%s: got %s, want %s", length, got, want)
		}
	}
}

// TestKeptUntil: a reservation that takes as long as a store is waited for still finds its account.
func TestKeptUntil(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)
	if got := shared.KeptUntil(end).Sub(end); got <= 30*time.Second {
		t.Errorf("an account is kept for %s", got)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&store.LimitError{}, store.ErrInvalid, fmt.Errorf("reserve: %w", store.ErrInvalid)} {
		if !shared.Refused(err) {
			t.Errorf("%v is no refusal", err)
		}
	}
	for _, err := range []error{nil, errors.New("connection reset")} {
		if shared.Refused(err) {
			t.Errorf("%v is a refusal", err)
		}
	}
}

func TestUnchecked(t *testing.T) {
	t.Parallel()
	err := shared.Unchecked("budget")
	if err.Code != codes.StoreUnavailable || !strings.HasPrefix(err.Message, "The budget could not be checked") ||
		err.Hint == "" {
		t.Errorf("got %+v", err)
	}
}

type timed struct{ store.Ledger }

func (timed) Now() time.Time { return time.Unix(1, 0) }

// TestLedgerClock: the given clock counts, then that of the ledger, then that of the machine.
func TestLedgerClock(t *testing.T) {
	given := func() time.Time { return time.Unix(2, 0) }
	if at := shared.LedgerClock(timed{}, given)(); at.Unix() != 2 {
		t.Errorf("given: %s", at)
	}
	if at := shared.LedgerClock(timed{}, nil)(); at.Unix() != 1 {
		t.Errorf("the ledger's: %s", at)
	}
	if at := shared.LedgerClock(struct{ store.Ledger }{}, nil)(); time.Since(at) > time.Minute {
		t.Errorf("the machine's: %s", at)
	}
}
