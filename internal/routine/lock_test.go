package routine_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast/internal/routine"
)

// TestLock: one at a time has the lock, and those who wait for it are blocked for synctest.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l routine.Lock
		var all sync.WaitGroup
		inside, most := 0, 0
		l.Lock()
		for range 10 {
			all.Go(func() {
				l.Lock()
				defer l.Unlock()
				inside++
				most = max(most, inside)
				inside--
			})
		}
		synctest.Wait()
		if most != 0 {
			t.Error("somebody else has the lock, too")
		}
		l.Unlock()
		all.Wait()
		if most != 1 {
			t.Errorf("%d had it at a time", most)
		}
	})
}
