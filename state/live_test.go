package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
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

// TestUnlistedState: in a run of an agent, a key that no middleware lists cannot be used.
// Its scope and its redaction would not apply.
func TestUnlistedState(t *testing.T) {
	t.Parallel()
	type token struct{ Text string }
	listed := state.Register(state.Spec[token]{Name: "acme.listed"})
	unlisted := state.Register(state.Spec[token]{Name: "acme.unlisted"})
	namesake := state.Register(state.Spec[token]{Name: "acme.listed"})
	schema := schemaWith(t, listed)
	// A container outside of a run takes any key, as an older program may have stored it.
	live := schema.Live(unlisted.With(schema.New(), token{"stored"}))
	ctx := state.ContextWith(t.Context(), live)
	for _, key := range []*state.Key[token]{unlisted, namesake} {
		_, loaded := key.Load(ctx)
		_, updated := key.Update(ctx, func(token) token { t.Error("called"); return token{"secret"} })
		for _, err := range []error{loaded, updated, key.Reset(ctx)} {
			wantError(t, err, codes.StateNotListed, key.StateName())
			if hint := holdfast.AsError(err).Hint; !strings.Contains(hint, "Middleware.States") {
				t.Errorf("the hint %q does not say where to list it", hint)
			}
		}
	}
	if got := mustGet(t, unlisted, live.Now()); got.Text != "stored" {
		t.Errorf("what was stored is now %+v", got)
	}
	if _, err := listed.Update(ctx, func(token) token { return token{"fine"} }); err != nil {
		t.Error(err)
	}
	if got, err := listed.Load(ctx); err != nil || got.Text != "fine" {
		t.Errorf("the listed state is %+v, %v", got, err)
	}
}
