package storetest

import (
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// presenceTests test [store.Presence].
func presenceTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"announced and retired": testRetire,
		"a lease runs out":      testExpire,
		"a lease is renewed":    testRenew,
	}
}

func wantAlive(t *testing.T, s store.Store, process string, want bool) {
	t.Helper()
	if got := must(s.Lease(t.Context(), process))(t); got.Alive() != want || want && (got.Gone || got.Until.IsZero()) {
		t.Errorf("Lease(%q) is %+v, want one that is alive: %v", process, got, want)
	}
}

func announce(t *testing.T, s store.Store, process string, ttl time.Duration) {
	t.Helper()
	if err := s.Announce(t.Context(), process, ttl); err != nil {
		t.Fatalf("Announce: %v", err)
	}
}

func retire(t *testing.T, s store.Store, process string) {
	t.Helper()
	if err := s.Retire(t.Context(), process); err != nil {
		t.Fatalf("Retire: %v", err)
	}
}

func testRetire(t *testing.T, s store.Store) {
	wantAlive(t, s, "p", false)
	retire(t, s, "p")
	announce(t, s, "p", time.Hour)
	announce(t, s, "q", time.Hour)
	wantAlive(t, s, "p", true)
	wantAlive(t, s, "", false)
	retire(t, s, "p")
	wantAlive(t, s, "p", false)
	if got := must(s.Lease(t.Context(), "p"))(t); !got.Gone {
		t.Errorf("the lease of a process that has retired is %+v", got)
	}
	wantAlive(t, s, "q", true)
	announce(t, s, "p", time.Hour)
	wantAlive(t, s, "p", true)
}

// shortLease is the length of leases that tests let run out.
const shortLease = 50 * time.Millisecond

// awaitExpiry polls until the process's lease has run out, which no store signals.
func awaitExpiry(t *testing.T, s store.Store, process string) {
	t.Helper()
	for begun := time.Now(); must(s.Lease(t.Context(), process))(t).Alive(); time.Sleep(shortLease / 10) {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("the lease of %s has not run out after %s", shortLease, time.Since(begun))
		}
	}
}

func testExpire(t *testing.T, s store.Store) {
	announce(t, s, "long", time.Hour)
	begun := time.Now()
	announce(t, s, "short", shortLease)
	awaitExpiry(t, s, "short")
	if lived := time.Since(begun); lived < shortLease {
		t.Errorf("the lease of %s ran out after %s", shortLease, lived)
	}
	wantAlive(t, s, "long", true)
}

// testRenew: a process that was announced again outlives another process, whose equally
// long lease began later than its own first one.
func testRenew(t *testing.T, s store.Store) {
	announce(t, s, "p", shortLease)
	before := must(s.Lease(t.Context(), "p"))(t)
	announce(t, s, "other", shortLease)
	announce(t, s, "p", time.Hour)
	if after := must(s.Lease(t.Context(), "p"))(t); !after.Until.After(before.Until) || after.Left <= shortLease || after.Left > time.Hour {
		t.Errorf("a renewal for an hour made the lease %+v, which was %+v", after, before)
	}
	awaitExpiry(t, s, "other")
	wantAlive(t, s, "p", true)
}
