package agenttest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/store"
)

func TestAHookAsAFunction(t *testing.T) {
	at := holdfast.Iteration{Agent: "shop", Thread: "x", Number: 3}
	ctx, run := agenttest.Context(t, agenttest.WithState(visitsV1, visits{N: 4}), agenttest.At(at))
	counting(visitsV1).AfterIteration(ctx, &at, &holdfast.IterationResult{})
	if got, err := visitsV1.Load(ctx); err != nil || got.N != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := visitsV1.Get(run.States()); err != nil || got.N != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if n := run.Notices(); len(n) != 1 || n[0].Name != "test.counted" || string(n[0].Value) != `{"n":5}` {
		t.Errorf("notices: %s", n)
	}
	if got := holdfast.IterationFrom(ctx); got.Agent != "shop" || got.Number != 3 {
		t.Errorf("%+v", got)
	}
	if err := holdfast.Notify(ctx, "test.bad", func() {}); err == nil {
		t.Error("a notice that is no JSON is taken")
	}
}

// TestRunsMayShareALedger: each run has a ledger of its own unless it is given one.
func TestRunsMayShareALedger(t *testing.T) {
	reserve := func(ctx context.Context, id string) error {
		ledger, err := store.LedgerFrom(ctx)
		if err != nil {
			return err
		}
		return ledger.Reserve(ctx, &store.Reservation{
			Tenant:  "acme",
			ID:      id,
			Now:     time.Now(),
			Entries: []store.Entry{{Account: "a", Amount: 1, Limit: 1}},
		})
	}
	one, _ := agenttest.Context(t)
	two, _ := agenttest.Context(t)
	if err := reserve(one, "r1"); err != nil {
		t.Error(err)
	}
	if err := reserve(two, "r2"); err != nil {
		t.Errorf("another run's ledger: %v", err)
	}
	ledger, err := store.LedgerFrom(one)
	if err != nil {
		t.Fatal(err)
	}
	three, _ := agenttest.Context(t, agenttest.WithLedger(ledger))
	if err := reserve(three, "r3"); err == nil {
		t.Error("the shared ledger is not shared")
	}
	if it := holdfast.IterationFrom(three); it.Thread != "t" || it.Principal.Tenant == "" {
		t.Errorf("%+v", it)
	}
}

// TestKept: a tool's test sees what a call keeps.
func TestKept(t *testing.T) {
	ctx, recorded := agenttest.Context(t)
	ctx = holdfast.ContextWithCall(ctx, holdfast.ToolCall{ID: "c1"}, nil)
	if err := holdfast.Keep(ctx, json.RawMessage(`{"task":1}`)); err != nil {
		t.Fatal(err)
	}
	if got, other := recorded.Kept("c1"), recorded.Kept("c2"); string(got) != `{"task":1}` || other != nil {
		t.Errorf("c1 has kept %s, c2 %s", got, other)
	}
	if got := holdfast.CallFrom(ctx).Kept; string(got) != `{"task":1}` {
		t.Errorf("the call sees %s", got)
	}
}
