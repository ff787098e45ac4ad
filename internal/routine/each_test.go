package routine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestEach: all are called, as many at a time as may be, and have returned at the end.
func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most, called := 0, 0, map[int]bool{}
		began := time.Now()
		Each(10, 4, func(i int) {
			mu.Lock()
			called[i] = true
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
		})
		if took := time.Since(began); len(called) != 10 || most != 4 || running != 0 || took != 3*time.Second {
			t.Errorf("%d were called, %d at a time, %d of which still run; it took %s", len(called), most, running,
				took)
		}
		Each(0, 1, func(int) { t.Error("nothing was to be called") })
	})
}
