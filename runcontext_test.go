package holdfast_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

type emptyLedger struct{ holdfast.Ledger }

func TestRunContext(t *testing.T) {
	t.Parallel()
	var told []any
	full := &holdfast.RunContext{
		Ledger:    emptyLedger{},
		Iteration: func() holdfast.Iteration { return holdfast.Iteration{Thread: "t", Number: 3} },
		Notify: func(_ context.Context, name string, value any) error {
			told = append(told, name, value)
			return errors.New("the store is gone")
		},
	}
	ctx := holdfast.ContextWithRun(context.Background(), full)
	if it := holdfast.IterationFrom(ctx); it.Thread != "t" || it.Number != 3 {
		t.Errorf("%+v", it)
	}
	if l, err := holdfast.LedgerFrom(ctx); l != (emptyLedger{}) || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	if err := holdfast.Notify(ctx, "acme.tripped", 5); err == nil || len(told) != 2 || told[0] != "acme.tripped" || told[1] != 5 {
		t.Errorf("%v, %v", err, told)
	}
}

// TestOutsideARun: functions that need a run report that there is none; a test's run
// may have only some of the parts.
func TestOutsideARun(t *testing.T) {
	t.Parallel()
	bare := holdfast.ContextWithRun(context.Background(), &holdfast.RunContext{})
	for _, ctx := range []context.Context{context.Background(), bare} {
		if it := holdfast.IterationFrom(ctx); it.Thread != "" {
			t.Errorf("%+v", it)
		}
		if _, err := holdfast.LedgerFrom(ctx); !errors.Is(err, holdfast.ErrNoRun) {
			t.Errorf("ledger: %v", err)
		}
	}
	if err := holdfast.Notify(context.Background(), "acme.tripped", nil); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("notify: %v", err)
	}
	if err := holdfast.Notify(bare, "acme.tripped", nil); err != nil {
		t.Errorf("notify with nobody to tell: %v", err)
	}
}

// TestStateReset: a hook forgets a value; the next read is the initial one.
func TestStateReset(t *testing.T) {
	t.Parallel()
	type mood struct{ Text string }
	key := holdfast.RegisterState(holdfast.StateSpec[mood]{Name: "acme.mood", Initial: func() mood { return mood{"calm"} }})
	live := holdfast.NewLiveStates(nil)
	ctx := holdfast.ContextWithRun(t.Context(), &holdfast.RunContext{States: live})
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
