package holdfast_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

type emptyLedger struct{ store.Ledger }

func TestRunContext(t *testing.T) {
	t.Parallel()
	var told []any
	full := &holdfast.RunContext{
		Iteration: func() holdfast.Iteration { return holdfast.Iteration{Thread: "t", Number: 3} },
		Notify: func(_ context.Context, name string, value any) error {
			told = append(told, name, value)
			return errors.New("the store is gone")
		},
	}
	ctx := store.ContextWithLedger(holdfast.ContextWithRun(context.Background(), full), emptyLedger{})
	if it := holdfast.IterationFrom(ctx); it.Thread != "t" || it.Number != 3 {
		t.Errorf("%+v", it)
	}
	if l, err := store.LedgerFrom(ctx); l != (emptyLedger{}) || err != nil {
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
		if _, err := store.LedgerFrom(ctx); !errors.Is(err, holdfast.ErrNoRun) {
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
