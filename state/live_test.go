package state_test

import (
	"errors"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// TestStateReset: a hook forgets a value; the next read is the initial one.
func TestStateReset(t *testing.T) {
	t.Parallel()
	type mood struct{ Text string }
	key := state.Register(state.Spec[mood]{Name: "acme.mood", Initial: func() mood { return mood{"calm"} }})
	live := state.NewLive(nil)
	ctx := state.ContextWith(t.Context(), live)
	if _, err := key.Update(ctx, func(mood) mood { return mood{"angry"} }); err != nil {
		t.Fatal(err)
	}
	if err := key.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := key.Load(ctx); err != nil || got.Text != "calm" || key.Has(live.Now()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := key.Reset(t.Context()); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("outside a run: %v", err)
	}
}
