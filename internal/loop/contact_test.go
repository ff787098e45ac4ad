package loop

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestContact: silence counts after a whole lease of renewals without a gap.
func TestContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContact(3 * time.Second)
		if left := c.deaf(); left != 3*time.Second {
			t.Errorf("before the first renewal it may judge in %s", left)
		}
		renew := func(after, wantAway, wantDeaf time.Duration) {
			t.Helper()
			time.Sleep(after)
			if away, deaf := c.renewed(), c.deaf(); away != wantAway || deaf != wantDeaf {
				t.Errorf("a renewal after %s: away %s, deaf for %s, want %s and %s", after, away, deaf, wantAway, wantDeaf)
			}
		}
		renew(0, 0, 3*time.Second)
		<-c.began
		renew(time.Second, 0, 2*time.Second)
		renew(1500*time.Millisecond, 0, 500*time.Millisecond)
		renew(500*time.Millisecond, 0, 0)
		renew(time.Second, 0, 0)
		time.Sleep(1600 * time.Millisecond)
		if left := c.deaf(); left != 3*time.Second {
			t.Errorf("after a gap that no renewal has ended, it may judge in %s", left)
		}
		renew(0, 1600*time.Millisecond, 3*time.Second)
		<-c.began
		renew(time.Second, 0, 2*time.Second)
		renew(2*time.Second, 2*time.Second, 3*time.Second)
		if len(c.began) != 1 {
			t.Error("the last contact was not announced")
		}
		here := time.Now()
		time.Sleep(1500 * time.Millisecond)
		if !c.heldSince(here) || c.heldSince(here.Add(-1)) {
			t.Error("the lease was held since the contact began, and not since before")
		}
		time.Sleep(time.Nanosecond)
		if c.heldSince(here) {
			t.Error("a lease that was not renewed in time is held")
		}
	})
}
