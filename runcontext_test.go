package holdfast_test

import (
	"context"
	"encoding/json"
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
		Record: func(_ context.Context, a holdfast.Activity) error {
			told = append(told, a.Type, string(a.Content))
			return nil
		},
		Mark: func(_ context.Context, label string) error {
			told = append(told, label)
			return nil
		},
		History: func() []holdfast.Message { return []holdfast.Message{{ID: "m1"}} },
	}
	ctx := store.ContextWithLedger(holdfast.ContextWithRun(context.Background(), full), emptyLedger{})
	if it := holdfast.IterationFrom(ctx); it.Thread != "t" || it.Number != 3 {
		t.Errorf("%+v", it)
	}
	if l, err := store.LedgerFrom(ctx); l != (emptyLedger{}) || err != nil {
		t.Errorf("%v, %v", l, err)
	}
	if err := holdfast.Notify(ctx, "acme.tripped", 5); err == nil || len(told) != 2 || told[0] != "acme.tripped" ||
		told[1] != 5 {
		t.Errorf("%v, %v", err, told)
	}
	if err := holdfast.Record(ctx, "acme.seen", map[string]int{"n": 1}); err != nil || len(told) != 4 ||
		told[2] != "acme.seen" || told[3] != `{"n":1}` {
		t.Errorf("%v, %v", err, told)
	}
	for name, content := range map[string]any{"": struct{}{}, "acme.list": []int{}, "acme.never": make(chan int)} {
		if err := holdfast.Record(ctx, name, content); err == nil || len(told) != 4 {
			t.Errorf("%q was recorded: %v", name, told)
		}
	}
	if err := holdfast.Mark(ctx, "before the payment"); err != nil || len(told) != 5 ||
		told[4] != "before the payment" {
		t.Errorf("%v, %v", err, told)
	}
	if messages := holdfast.HistoryFrom(ctx); len(messages) != 1 || messages[0].ID != "m1" {
		t.Errorf("%+v", messages)
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
	if err := holdfast.Record(context.Background(), "acme.seen", struct{}{}); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("record: %v", err)
	}
	if err := holdfast.Record(bare, "acme.seen", struct{}{}); err != nil {
		t.Errorf("record with nowhere to put it: %v", err)
	}
	if err := holdfast.Mark(context.Background(), "here"); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("mark: %v", err)
	}
	if err := holdfast.Mark(bare, "here"); err != nil {
		t.Errorf("mark with nothing to list: %v", err)
	}
	if messages := holdfast.HistoryFrom(bare); messages != nil {
		t.Errorf("%+v", messages)
	}
}

// TestRunContextWithin: a hook that changes a part of the run leaves the rest as it is.
func TestRunContextWithin(t *testing.T) {
	t.Parallel()
	var kept string
	outer := holdfast.ContextWithRun(context.Background(), &holdfast.RunContext{
		Iteration: func() holdfast.Iteration { return holdfast.Iteration{Thread: "t"} },
		Notify:    func(context.Context, string, any) error { return errors.New("told") },
		Keep: func(_ context.Context, call string, value json.RawMessage) error {
			kept = call + string(value)
			return nil
		},
		Record:  func(context.Context, holdfast.Activity) error { return errors.New("the outer one") },
		Mark:    func(context.Context, string) error { return errors.New("marked") },
		History: func() []holdfast.Message { return []holdfast.Message{{ID: "m1"}} },
	})
	run := &holdfast.RunContext{Record: func(context.Context, holdfast.Activity) error { return nil }}
	ctx := holdfast.ContextWithCall(holdfast.ContextWithRun(outer, run), holdfast.ToolCall{ID: "c1"}, nil)
	if err := holdfast.Keep(ctx, json.RawMessage(`7`)); err != nil || kept != "c17" {
		t.Errorf("kept %q, %v", kept, err)
	}
	if holdfast.IterationFrom(ctx).Thread != "t" || len(holdfast.HistoryFrom(ctx)) != 1 ||
		holdfast.Notify(ctx, "a.b", 1) == nil || holdfast.Mark(ctx, "here") == nil {
		t.Error("the rest of the run is gone")
	}
	if err := holdfast.Record(ctx, "a.b", struct{}{}); err != nil || run.Keep != nil {
		t.Errorf("recorded with %v, and the hook's own value is %+v", err, run)
	}
	if err := holdfast.Record(holdfast.ContextWithRun(outer, &holdfast.RunContext{}), "a.b", struct{}{}); err == nil {
		t.Error("what the hook leaves out is not the outer run's")
	}
}
