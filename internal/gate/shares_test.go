package gate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestSharesGoByTurns: of two keys, one with many who wait and one with one, the one does not
// wait for the many. Who gives up is in nobody's way.
func TestSharesGoByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares(1)
		leave, err := s.Enter(t.Context(), "loud")
		if err != nil {
			t.Fatal(err)
		}
		came := make(chan string, 10)
		wait := func(ctx context.Context, key string) {
			go func() {
				leave, err := s.Enter(ctx, key)
				if err != nil {
					came <- "gave up"
					return
				}
				came <- key
				leave()
			}()
			synctest.Wait()
		}
		impatient, cancel := context.WithCancel(t.Context())
		wait(impatient, "other")
		for range 3 {
			wait(t.Context(), "loud")
		}
		wait(impatient, "loud")
		wait(t.Context(), "quiet")
		cancel()
		synctest.Wait()
		leave()
		synctest.Wait()
		var got []string
		for range 6 {
			got = append(got, <-came)
		}
		if want := []string{"gave up", "gave up", "loud", "quiet", "loud", "loud"}; !slices.Equal(got, want) {
			t.Errorf("they went %v, want %v", got, want)
		}
		if leave, err = s.Enter(t.Context(), "next"); err != nil {
			t.Fatal(err)
		}
		leave()
		if _, err := s.Enter(impatient, "late"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if len(s.turn) != 0 || len(s.waiting) != 0 || s.free != 1 {
			t.Errorf("left over: %+v", s)
		}
	})
}
