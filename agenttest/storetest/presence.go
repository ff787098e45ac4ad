package storetest

import (
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
)

func presenceTests() map[string]func(*testing.T, holdfast.Store) {
	return map[string]func(*testing.T, holdfast.Store){
		"announced and retired": testRetire,
		"a lease runs out":      testExpire,
		"a lease is renewed":    testRenew,
	}
}

func wantAlive(t *testing.T, s holdfast.Store, process string, want bool) {
	t.Helper()
	if got := must(s.Alive(t.Context(), process))(t); got != want {
		t.Errorf("Alive(%q) is %v, want %v", process, got, want)
	}
}

func announce(t *testing.T, s holdfast.Store, process string, ttl time.Duration) {
	t.Helper()
	if err := s.Announce(t.Context(), process, ttl); err != nil {
		t.Fatalf("Announce: %v", err)
	}
}

func retire(t *testing.T, s holdfast.Store, process string) {
	t.Helper()
	if err := s.Retire(t.Context(), process); err != nil {
		t.Fatalf("Retire: %v", err)
	}
}

func testRetire(t *testing.T, s holdfast.Store) {
	wantAlive(t, s, "p", false)
	retire(t, s, "p")
	announce(t, s, "p", time.Hour)
	announce(t, s, "q", time.Hour)
	wantAlive(t, s, "p", true)
	wantAlive(t, s, "", false)
	retire(t, s, "p")
	wantAlive(t, s, "p", false)
	wantAlive(t, s, "q", true)
	announce(t, s, "p", time.Hour)
	wantAlive(t, s, "p", true)
}

func testExpire(t *testing.T, s holdfast.Store) {
	announce(t, s, "long", time.Hour)
	begun := time.Now()
	const ttl = 100 * time.Millisecond
	announce(t, s, "short", ttl)
	for must(s.Alive(t.Context(), "short"))(t) {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("the lease of %s has not run out after %s", ttl, time.Since(begun))
		}
		time.Sleep(ttl / 20)
	}
	if lived := time.Since(begun); lived < ttl {
		t.Errorf("the lease of %s ran out after %s", ttl, lived)
	}
	wantAlive(t, s, "long", true)
}

func testRenew(t *testing.T, s holdfast.Store) {
	announce(t, s, "p", 50*time.Millisecond)
	announce(t, s, "p", time.Hour)
	time.Sleep(100 * time.Millisecond)
	wantAlive(t, s, "p", true)
}
