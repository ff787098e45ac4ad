package routine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast/internal/routine"
)

// TestEntrance: once it is closed nobody enters, and a wait lasts until the last one has left, or
// until the one who waits gives up.
func TestEntrance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e routine.Entrance
		for range 2 {
			if !e.Enter() {
				t.Fatal("it is open, and lets nobody in")
			}
		}
		e.Close()
		if e.Enter() {
			t.Error("it is closed, and lets somebody in")
		}
		given, giveUp := context.WithCancel(t.Context())
		giveUp()
		e.Wait(given)
		left := false
		go func() {
			e.Leave()
			synctest.Wait()
			left = true
			e.Leave()
		}()
		e.Wait(t.Context())
		if !left {
			t.Error("somebody is inside, and nobody waits for them")
		}
		e.Wait(t.Context())
	})
}
