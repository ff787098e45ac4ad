package routine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGoroutinesStay: work that comes one after the other is done by one goroutine, which
// leaves when the context ends.
func TestGoroutinesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := NewPool(ctx, 2)
		done := 0
		for range 10 {
			p.Go(func() { done++ }) // a second goroutine would be a race
			synctest.Wait()
			if len(p.waiting) != 1 {
				t.Fatalf("%d goroutines wait, want 1", len(p.waiting))
			}
		}
		cancel()
		p.Wait()
		if done != 10 {
			t.Errorf("%d of 10 were done", done)
		}
	})
}

// TestNobodyWaitsForAGoroutine: however much comes at once, all of it is done at once; only
// a few goroutines stay.
func TestNobodyWaitsForAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := NewPool(ctx, 3)
		var all sync.WaitGroup
		all.Add(20)
		for range 20 {
			p.Go(func() { all.Done(); all.Wait() })
		}
		all.Wait()
		synctest.Wait()
		if len(p.waiting) != 3 {
			t.Errorf("%d goroutines stay, want 3", len(p.waiting))
		}
		cancel()
		p.Wait()
		late := false
		p.Go(func() { late = true })
		p.Wait()
		if !late {
			t.Error("work that came after the end was not done")
		}
	})
}
