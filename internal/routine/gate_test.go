package routine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAFewAtATime: of many who come at once, only so many are inside, all get in, and a
// place that is given back twice is one place.
func TestAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(3, time.Minute)
		var mu sync.Mutex
		inside, most := 0, 0
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				leave := g.Enter(t.Context())
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				inside--
				mu.Unlock()
				leave()
				leave()
			})
		}
		all.Wait()
		if most != 3 {
			t.Errorf("%d were inside at a time, want 3", most)
		}
	})
}

// TestTheFirstInLineGoesWithoutAPlace: a holder that keeps its place long keeps the others
// waiting only for the first one's patience, one after the other, in the order in which they
// came.
func TestTheFirstInLineGoesWithoutAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, time.Second)
		leave := g.Enter(t.Context())
		began := time.Now()
		type went struct {
			who   int
			after time.Duration
		}
		came := make(chan went, 3)
		for i := range 3 {
			go func() {
				g.Enter(t.Context())()
				came <- went{i, time.Since(began)}
			}()
			synctest.Wait()
		}
		got := []went{<-came, <-came, <-came}
		if want := []went{{0, time.Second}, {1, 2 * time.Second}, {2, 3 * time.Second}}; !slices.Equal(got, want) {
			t.Errorf("they went %v, want %v", got, want)
		}
		leave()
	})
}

// TestWhoGivesUpWaitsNoMore: neither in line nor as the first in it.
func TestWhoGivesUpWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, time.Hour)
		leave := g.Enter(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var gone atomic.Int64
		for range 3 {
			go func() { g.Enter(ctx)(); gone.Add(1) }()
		}
		synctest.Wait()
		if n := gone.Load(); n != 0 {
			t.Fatalf("%d did not wait", n)
		}
		cancel()
		synctest.Wait()
		if n := gone.Load(); n != 3 {
			t.Errorf("%d of 3 have given up", n)
		}
		leave()
		g.Enter(t.Context())() // the place is free
	})
}
