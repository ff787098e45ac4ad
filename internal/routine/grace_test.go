package routine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestEnds: something has as long as the context, and a while more.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, ends := range map[time.Duration]bool{0: true, time.Second: true, 1900 * time.Millisecond: true,
			time.Hour: false} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			last, stop := Grace(ctx, time.Second)
			began := time.Now()
			if got := Ends(last, func() { time.Sleep(takes) }); got != ends || time.Since(began) > 3*time.Second {
				t.Errorf("%s: %v after %s", takes, got, time.Since(began))
			}
			if !ends && !Ends(last, func() {}) {
				t.Error("what takes no time has not ended")
			}
			stop()
			cancel()
		}
		time.Sleep(time.Hour)
	})
}
