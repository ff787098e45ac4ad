package owner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
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
			if away, deaf := c.renewed(clock.Now()), c.deaf(); away != wantAway || deaf != wantDeaf {
				t.Errorf("a renewal after %s: away %s, deaf for %s, want %s and %s", after, away, deaf, wantAway,
					wantDeaf)
			}
		}
		renew(0, 0, 3*time.Second)
		<-c.began
		renew(time.Second, 0, 2*time.Second)
		renew(1800*time.Millisecond, 0, 200*time.Millisecond)
		renew(200*time.Millisecond, 0, 0)
		renew(time.Second, 0, 0)
		time.Sleep(1900 * time.Millisecond)
		if left := c.deaf(); left != 3*time.Second {
			t.Errorf("after a gap that no renewal has ended, it may judge in %s", left)
		}
		renew(0, 1900*time.Millisecond, 3*time.Second)
		<-c.began
		renew(time.Second, 0, 2*time.Second)
		before := clock.Now()
		renew(2*time.Second, 2*time.Second, 3*time.Second)
		if len(c.began) != 1 {
			t.Error("the last contact was not announced")
		}
		here := clock.Now()
		time.Sleep(1800 * time.Millisecond)
		if !c.HeldSince(here) || c.HeldSince(before) {
			t.Error("the lease was held since the contact began, and not since before")
		}
		time.Sleep(time.Nanosecond)
		if c.HeldSince(here) {
			t.Error("a lease that was not renewed in time is held")
		}
		c.renewed(clock.Now())
		now := clock.Now()
		if !c.HeldSince(now) {
			t.Error("the lease is not held after its renewal")
		}
		c.giveUp()
		if c.HeldSince(now) {
			t.Error("a lease that was given up is held")
		}
	})
}

// TestContactCountsFromTheQuestion: a renewal that is answered late counts from when it was
// asked for, and the lease is held without a break only if the answer to it came in time.
func TestContactCountsFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContact(3 * time.Second)
		c.renewed(clock.Now())
		start := clock.Now()
		time.Sleep(time.Second)
		asked := clock.Now()
		time.Sleep(800 * time.Millisecond)
		if away := c.renewed(asked); away != 0 || !c.HeldSince(start) {
			t.Errorf("an answer that took 800 ms breaks the contact: %s", away)
		}
		time.Sleep(time.Second)
		if !c.HeldSince(start) {
			t.Error("1.8 s after it was asked for, the renewal does not hold")
		}
		time.Sleep(time.Nanosecond)
		if c.HeldSince(start) {
			t.Error("a renewal counts from its answer")
		}
		asked = clock.Now()
		time.Sleep(4 * time.Second) // and so does what came before
		if away := c.renewed(asked); away != 5800*time.Millisecond+time.Nanosecond || c.HeldSince(start) {
			t.Errorf("a lease that was not held is held: away %s", away)
		}
		if c.HeldSince(clock.Now()) {
			t.Error("what the store said four seconds ago is proof of now")
		}
	})
}
