package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The events at a limit: the question, its answers, warnings, and a store that does not
// answer. All of it runs against a ledger in memory, without a server.

// answer has a person answer the question of the budget.
func answer(h *hooktest.Run, payload string) {
	h.At.Answer = &holdfast.Answer{Reason: "holdfast:budget", Payload: json.RawMessage(payload)}
}

// spent takes a run close to its limit: 90 of 100 tokens are used, or 0.90 of 1.00.
func spent(t *testing.T, change func(*budget.Options)) (*hooktest.Run, holdfast.Middleware) {
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) {
		o.Then = "ask"
		o.Prices = map[string]budget.Price{"p/m": {Input: money(t, "10000"), Output: money(t, "10000")}}
		change(o)
	}))
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(90, 0))); err != nil {
		t.Fatal(err)
	}
	h.Next()
	return h, m
}

// TestBudgetAsks: at the limit a person is asked, and the answer raises it.
func TestBudgetAsks(t *testing.T) {
	t.Parallel()
	runTokens := func(o *budget.Options) { o.Run.Tokens = 100 }
	threadCost := func(o *budget.Options) { o.Thread.Cost = money(t, "1") }
	for name, tt := range map[string]struct {
		change  func(*budget.Options)
		payload string
		allowed bool
	}{
		"by a number":            {runTokens, `{"allow":true,"raise":90}`, true},
		"once more the same":     {runTokens, `{"allow":true}`, true},
		"by money":               {threadCost, `{"allow":true,"raise":0.90}`, true},
		"money once more":        {threadCost, `{"allow":true,"comment":"go"}`, true},
		"no":                     {runTokens, `{"allow":false,"raise":90}`, false},
		"nothing said":           {runTokens, ``, false},
		"no object":              {runTokens, `true`, false},
		"allow is a text":        {runTokens, `{"allow":"true"}`, false},
		"not said to be allowed": {runTokens, `{"raise":90}`, false},
		"a negative raise":       {runTokens, `{"allow":true,"raise":-1}`, false},
		"half a token":           {runTokens, `{"allow":true,"raise":0.5}`, false},
		"more than is counted":   {runTokens, `{"allow":true,"raise":9007199254740993}`, false},
		"money of no worth":      {threadCost, `{"allow":true,"raise":0}`, false},
		"money that is unclear":  {threadCost, `{"allow":true,"raise":1e-9}`, false},
	} {
		h, m := spent(t, tt.change)
		ask := hooktest.WantQuestion(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))))
		if ask.Reason != "holdfast:budget" || !strings.Contains(ask.Message, "May it go on?") ||
			!json.Valid(ask.ResponseSchema) || !strings.Contains(string(ask.Metadata), `"needed":1`) {
			t.Fatalf("%s: got %+v %s", name, ask, ask.Metadata)
		}
		answer(h, tt.payload)
		err := h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1)))
		if tt.allowed && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !tt.allowed {
			hooktest.WantCode(t, err, codes.BudgetExceeded, "has used")
		}
	}
}

// TestBudgetAnswersCountOnce: the answer is there for every attempt of the iteration, but
// raises the limit once. Another question needs another answer.
func TestBudgetAnswersCountOnce(t *testing.T) {
	t.Parallel()
	h, m := spent(t, func(o *budget.Options) { o.Run.Tokens = 100 })
	hooktest.WantQuestion(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))))
	answer(h, `{"allow":true,"raise":90}`)
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(60, 0))); err != nil {
		t.Fatal(err)
	}
	ask := hooktest.WantQuestion(t, h.Try(m, hooktest.Costing(hooktest.Usage(1, 1)), 1))
	if !strings.Contains(ask.Message, "The run has used 150 of its budget of 190 tokens; 100 more are needed") {
		t.Error(ask.Message)
	}
	h.At.Answer = &holdfast.Answer{Reason: "someone:else", Payload: json.RawMessage(`{"allow":true}`)}
	hooktest.WantQuestion(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))))
	h.At.Answer = &holdfast.Answer{Reason: "holdfast:budget", Declined: true}
	hooktest.WantCode(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))), codes.BudgetExceeded, "has used 150")
	hooktest.WantQuestion(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1)))) // the answer was taken
}

// TestBudgetRaisesLast: what was raised stays raised for the thread or for the run,
// depending on the limit.
func TestBudgetRaisesLast(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*budget.Options)
		lasts  bool
	}{
		"thread": {func(o *budget.Options) { o.Thread.Tokens = 100 }, true},
		"tenant": {func(o *budget.Options) { o.Tenant.Tokens = 100 }, false},
	} {
		h, m := spent(t, tt.change)
		hooktest.WantQuestion(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))))
		answer(h, `{"allow":true,"raise":1000}`)
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))); err != nil {
			t.Fatal(err)
		}
		thread, err := middlewareThreadState(h)
		if err != nil {
			t.Fatal(err)
		}
		h.States, h.At.Run = state.NewLive(thread), "r2"
		h.Next()
		err = h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1)))
		if tt.lasts && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !tt.lasts {
			hooktest.WantQuestion(t, err)
		}
	}
}

// middlewareThreadState returns the states with which the next run begins.
func middlewareThreadState(h *hooktest.Run) (*state.States, error) {
	schema, err := state.NewSchema(budget.New(budget.Options{Run: budget.Limit{Tokens: 1}}).States...)
	if err != nil {
		return nil, err
	}
	return schema.NewRun(h.States.Now()), nil
}

// TestBudgetWarnsOnce per run and limit.
func TestBudgetWarnsOnce(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) {
		o.Run.Tokens, o.Thread.Cost, o.Currency, o.WarnAt = 1000, money(t, "2"), "EUR", 10
		o.Prices = map[string]budget.Price{"p/m": {Input: money(t, "10000")}}
	}))
	for range 3 {
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(70, 0))); err != nil {
			t.Fatal(err)
		}
		h.Next()
	}
	h.WantNotices(`holdfast.budget_warning {"scope":"thread","unit":"cost","used":0.70,"limit":2.00,"currency":"EUR"}`,
		`holdfast.budget_warning {"scope":"run","unit":"tokens","used":140,"limit":1000}`)
}

// TestBudgetWithoutAStore: a call waits for the store, and is not made without it.
func TestBudgetWithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hooktest.New(t)
		store := &hooktest.Failing{Ledger: h.Ledger, Reserves: 4, Settles: 2, Reads: 1}
		h.Ledger = store
		m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 100 }))
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(0, 0))); err != nil {
			t.Fatal(err)
		}
		h.WantUsed("budget/run/th/r1/tokens", 0)
		h.Next()

		store.Reserves = -1
		begun := time.Now()
		err := h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1)))
		hooktest.WantCode(t, err, codes.StoreUnavailable, "The budget could not be checked")
		if d := time.Since(begun); d != 30*time.Second || !errors.Is(err, hooktest.ErrNoStore) {
			t.Errorf("after %s: %v", d, err)
		}

		store.Reserves, store.Settles = 0, -1
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))); err != nil {
			t.Fatal(err)
		}
		h.WantUsed("budget/run/th/r1/tokens", 100)
		h.WantNotices(`holdfast.budget_warning {"scope":"run","unit":"tokens","used":100,"limit":100}`,
			`holdfast.budget_unreported {"tokens":100,"cost":0.00,"currency":"USD"}`)
	})
}

// confused is a ledger that names an account nobody asked about.
type confused struct{ store.Ledger }

func (confused) Reserve(context.Context, *store.Reservation) error {
	return &store.LimitError{Account: "?", Limit: 1}
}

func TestBudgetOfAConfusedLedger(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	h.Ledger = confused{h.Ledger}
	err := h.Ask(budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 100 })), hooktest.Says())
	if full := new(store.LimitError); !errors.As(err, &full) {
		t.Errorf("got %v", err)
	}
}

// TestBudgetOfACancelledRun: nothing is reserved, and the error is the reason of the
// cancellation.
func TestBudgetOfACancelledRun(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	h.Ledger = &hooktest.Failing{Ledger: h.Ledger, Reserves: -1}
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 100 }))
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(h.Context())
	cancel(reason)
	for _, err := range m.Model(hooktest.Says())(ctx, &holdfast.ModelRequest{}) {
		if !errors.Is(err, reason) {
			t.Errorf("got %v", err)
		}
	}
}

// TestBudgetCannotBegin without a run, with states that cannot be read, or with names
// that no ledger accepts.
func TestBudgetCannotBegin(t *testing.T) {
	t.Parallel()
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 100 }))
	first := func(ctx context.Context) (failure error) {
		for _, err := range m.Model(hooktest.Says())(ctx, &holdfast.ModelRequest{}) {
			failure = err
		}
		return failure
	}
	if err := first(t.Context()); !errors.Is(err, holdfast.ErrNoRun) {
		t.Errorf("without a run: %v", err)
	}
	h := hooktest.New(t)
	schema, err := state.NewSchema(m.States...)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, stored, want string }{
		{"holdfast.budget", `{"account":[]}`, "array"},
		{"holdfast.budget", `{"raised":{"a":1,"b":-1}}`, "raised has -1 for b"},
		{"holdfast.budget_run", `{"account":[]}`, "array"},
		{"holdfast.budget_run", `{"tokens":-7}`, "tokens is -7"},
		{"holdfast.budget_run", `{"raised":{"a":-2}}`, "raised has -2 for a"},
	} {
		h.States = state.NewLive(schema.Restore(schema.Info(),
			[]state.Value{{Name: tt.name, Version: 1, Data: []byte(tt.stored)}}, nil))
		hooktest.WantCode(t, first(h.Context()), codes.StateUnreadable, tt.name, tt.want)
	}
	h.States, h.At.Principal.Tenant = state.NewLive(nil), strings.Repeat("x", store.MaxName+1)
	if err := first(h.Context()); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
