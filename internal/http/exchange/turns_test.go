package exchange

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// fullTurns returns turns of which one was taken, and what ends that.
func fullTurns(t *testing.T) (*Turns, func()) {
	t.Helper()
	all := TurnsOf(1)
	_, end, err := all.Take(t.Context(), of("first"), LargeBody)
	if err != nil {
		t.Fatal(err)
	}
	return all, end
}

// of returns a caller of the tenant.
func of(tenant string) holdfast.Principal { return holdfast.Principal{Tenant: tenant, User: "u"} }

// free returns how many large requests need not wait.
func (t *Turns) free() (n int) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan func(), 4)
	for i := range cap(got) {
		go func() {
			if _, end, err := t.Take(ctx, of(fmt.Sprint(i)), LargeBody); err == nil {
				got <- end
			}
		}()
	}
	synctest.Wait()
	n = len(got)
	cancel()
	synctest.Wait()
	for range n {
		end := <-got
		end()
	}
	return n
}

// TestTenantsTakeTurns: the many large requests of one tenant do not come before those of
// another, which has one.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, end := fullTurns(t)
		var order []string
		for _, tenant := range []string{"loud", "loud", "loud", "quiet", "loud"} {
			go func() {
				_, end, err := all.Take(t.Context(), of(tenant), LargeBody)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, tenant) // one at a time: the race detector says if not
				end()
			}()
			synctest.Wait()
		}
		if len(order) != 0 {
			t.Fatalf("%v did not wait", order)
		}
		end()
		synctest.Wait()
		if want := []string{"loud", "quiet", "loud", "loud", "loud"}; !slices.Equal(order, want) {
			t.Errorf("the order was %v, want %v", order, want)
		}
		if n := all.free(); n != 1 {
			t.Errorf("left: %d free", n)
		}
	})
}

// TestSmallRequestsDoNotWait, however many large ones do.
func TestSmallRequestsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, end := fullTurns(t)
		defer end()
		_, small, err := all.Take(t.Context(), of("first"), LargeBody-1)
		if err != nil {
			t.Fatal(err)
		}
		small()
		if all.free() != 0 {
			t.Error("a small request gave a turn back that it did not have")
		}
	})
}

// TestLeavingATurn: a client that leaves while it waits, or has its turn for too long,
// keeps nobody else waiting; ending twice gives back one turn.
func TestLeavingATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, end := fullTurns(t)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, _, err := all.Take(ctx, of("leaves"), LargeBody)
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; err == nil {
			t.Error("a client that has left got a turn")
		}
		begun := time.Now()
		_, second, err := all.Take(t.Context(), of("second"), LargeBody)
		if err != nil || time.Since(begun) != longestTurn {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		end()
		second()
		second()
		if n := all.free(); n != 1 {
			t.Errorf("left: %d free", n)
		}
	})
}
