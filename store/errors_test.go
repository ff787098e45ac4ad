package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// TestVersionError: it is an ErrVersionTooNew, and names what was found and what is known.
func TestVersionError(t *testing.T) {
	err := error(&store.VersionError{What: "the head", Stored: 9, Known: 5})
	if !errors.Is(err, store.ErrVersionTooNew) || errors.Is(err, store.ErrUnreadable) {
		t.Errorf("%v is not what it should be", err)
	}
	for _, want := range []string{"the head", "version 9", "up to 5"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestLease: a lease lasts until its end.
func TestLease(t *testing.T) {
	for left, want := range map[time.Duration]bool{time.Nanosecond: true, 0: false, -time.Second: false} {
		if got := (store.Lease{Left: left}).Alive(); got != want {
			t.Errorf("with %s left it is alive: %t", left, got)
		}
	}
}
