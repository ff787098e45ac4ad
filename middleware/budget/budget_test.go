package budget_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// The amounts that calls of the model reserve and settle, checked against a ledger in memory,
// without a server.

// calls are the options of most tests: every call reserves 100 tokens.
func calls(change func(*budget.Options)) budget.Options {
	o := budget.Options{ReserveTokens: budget.ReserveTokens{Input: 60, Output: 40}}
	change(&o)
	return o
}

func TestBudgetMistakes(t *testing.T) {
	t.Parallel()
	type o = budget.Options
	cost := budget.Limit{Cost: 1}
	prices := map[string]budget.Price{"p/m": {Input: 1}}
	hooktest.WantInvalid(t, "budget.New", budget.New, map[string]o{
		"there is no limit":        {},
		"run.tokens is -1":         {Run: budget.Limit{Tokens: -1}},
		"thread.cost is -0.000001": {Thread: budget.Limit{Cost: -1}},
		"run.window is set":        {Run: budget.Limit{Tokens: 1, Window: middleware.Duration(time.Hour)}},
		"user.window is 1ms: write 1s": {
			User: budget.Limit{Tokens: 1, Window: middleware.Duration(time.Millisecond)},
		},
		"reserveTokens has a number":         {Run: cost, ReserveTokens: budget.ReserveTokens{Output: -1}},
		`then is "stop": write "end"`:        {Run: cost, Then: "stop"},
		`unknownPrice is "no": write "refus`: {Run: cost, UnknownPrice: "no"},
		"warnAt is 101":                      {Run: cost, WarnAt: 101},
		"a limit of cost needs prices":       {Run: cost},
		`model is "p/x" and has no price`:    {Run: cost, Prices: prices, Model: "p/x"},
		`the price of "" is invalid`:         {Run: cost, Prices: map[string]budget.Price{"": {}}},
		`the price of "m" is invalid`: {
			Run:    budget.Limit{Tokens: 1},
			Prices: map[string]budget.Price{"m": {Output: -1}},
		},
	})
}

func TestBudgetOptionsOfAFile(t *testing.T) {
	t.Parallel()
	var o budget.Options
	err := holdfast.DecodeOptions(
		json.RawMessage(`{"tenant": {"cost": 250.5, "window": "720h"}, "run": {"tokens": 200000},
		"prices": {"openai/gpt-*": {"input": "2.50", "output": 10, "cachedInput": 0}}, "reserveTokens": {"input": "estimate", "output": 800}}`),
		&o,
	)
	if err != nil || o.Tenant.Cost.String() != "250.50" || *o.Prices["openai/gpt-*"].CachedInput != 0 ||
		o.ReserveTokens.Output != 800 {
		t.Errorf("got %+v, %v", o, err)
	}
	if err := holdfast.DecodeOptions(json.RawMessage(`{"reserveTokens": {"input": 12}}`), &o); err != nil ||
		o.ReserveTokens.Input != 12 {
		t.Errorf("got %+v, %v", o, err)
	}
	if err := holdfast.DecodeOptions(json.RawMessage(`{"reserveTokens": {"input": "few"}}`), &o); err == nil ||
		!strings.Contains(err.Error(), "or estimate") {
		t.Errorf("got %v", err)
	}
}

// TestBudgetOfTokens: what was used replaces what was reserved, and a call that does not
// fit is not made.
func TestBudgetOfTokens(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 250 }))
	during := func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		h.WantUsed("budget/run/th/r1/tokens", 100)
		return hooktest.Costing(hooktest.Usage(50, 20))(ctx, req)
	}
	if err := h.Ask(m, during); err != nil {
		t.Fatal(err)
	}
	h.WantUsed("budget/run/th/r1/tokens", 70)
	h.Next()
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(100, 30))); err != nil {
		t.Fatal(err)
	}
	h.Next()
	called := false
	err := h.Ask(m, func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		called = true
		return hooktest.Says()(ctx, req)
	})
	hooktest.WantCode(t, err, codes.BudgetExceeded,
		"The run has used 200 of its budget of 250 tokens; 100 more are needed for the next call.", `"messages": []`)
	if called {
		t.Error("the model was called")
	}
	h.WantNotices(`holdfast.budget_warning {"scope":"run","unit":"tokens","used":200,"limit":250}`,
		`holdfast.budget_exceeded {"scope":"run","unit":"tokens","used":200,"limit":250,"needed":100}`)
}

// TestBudgetOfMoney: the highest price is reserved until a model has answered, then the
// price of that model.
func TestBudgetOfMoney(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) {
		o.Thread.Cost = money(t, "10")
		o.Prices = map[string]budget.Price{
			"p/*":    {Input: money(t, "1")},
			"p/m*":   {Input: money(t, "1000"), Output: money(t, "100000")},
			"q/dear": {Output: money(t, "200000")},
		}
	}))
	account := "budget/thread/th/cost"
	if err := h.Ask(m, func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		h.WantUsed(account, int64(money(t, "8")))
		return hooktest.Costing(hooktest.Usage(20, 60))(ctx, req)
	}); err != nil {
		t.Fatal(err)
	}
	h.WantUsed(account, int64(money(t, "6.02")))
	h.Next()
	err := h.Ask(m, hooktest.Costing(hooktest.Usage(0, 0)))
	hooktest.WantCode(t, err, codes.BudgetExceeded,
		"The thread has used 6.02 of its budget of 10.00 USD; 4.06 more are needed for the next call.")
	h.WantNotices(`holdfast.budget_exceeded ` +
		`{"scope":"thread","unit":"cost","used":6.02,"limit":10.00,"needed":4.06,"currency":"USD"}`)
}

// TestBudgetTooSmallForOneCall: the error says what to do about it.
func TestBudgetTooSmallForOneCall(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.User.Tokens = 99 }))
	hooktest.WantCode(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))), codes.BudgetExceeded,
		"The user has used 0 of its budget of 99 tokens", "Not even one call fits", "reserveTokens")
}

// TestBudgetWindows: the budgets of a user and a tenant are reset with their windows, and
// a call counts against all limits at once.
func TestBudgetWindows(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	now := time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC)
	m := budget.New(calls(func(o *budget.Options) {
		o.User = budget.Limit{Tokens: 1000}
		o.Tenant = budget.Limit{Tokens: 150, Window: middleware.Duration(24 * time.Hour)}
		o.Now = func() time.Time { return now }
	}))
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(60, 0))); err != nil {
		t.Fatal(err)
	}
	h.Next()
	hooktest.WantCode(t, h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))), codes.BudgetExceeded,
		"The tenant has used 60 of its budget of 150 tokens")
	h.WantUsed("budget/tenant/2026-03-04T00:00:00Z/tokens", 60)
	h.WantUsed("budget/user/ann/all/tokens", 60)
	now = now.Add(time.Hour)
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(40, 0))); err != nil {
		t.Fatal(err)
	}
	h.WantUsed("budget/tenant/2026-03-05T00:00:00Z/tokens", 40)
	h.WantUsed("budget/user/ann/all/tokens", 100)
}

// TestBudgetCountsWhatComesLate: a call whose reservation reaches the store after the end of its
// window, when others have begun the next one, is still one of its own window, which is full.
func TestBudgetCountsWhatComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := budget.New(calls(func(o *budget.Options) {
			o.Tenant = budget.Limit{Tokens: 150, Window: middleware.Duration(time.Minute)}
		}))
		h, other, next := hooktest.New(t), hooktest.New(t), hooktest.New(t)
		other.Ledger, next.Ledger = &hooktest.Slow{Ledger: h.Ledger, Pause: time.Second}, h.Ledger
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)) - time.Second/2)
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(60, 0))); err != nil {
			t.Fatal(err)
		}
		late := make(chan error)
		go func() { late <- other.Ask(m, hooktest.Costing(hooktest.Usage(60, 0))) }()
		time.Sleep(800 * time.Millisecond)
		if err := next.Ask(m, hooktest.Costing(hooktest.Usage(60, 0))); err != nil {
			t.Errorf("the first call of the next window: %v", err)
		}
		hooktest.WantCode(t, <-late, codes.BudgetExceeded, "The tenant has used 60 of its budget of 150 tokens")
	})
}

// TestBudgetAccounts: a run that resumes another shares its account, and a fork that of
// the thread it came from.
func TestBudgetAccounts(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens, o.Thread.Tokens = 1000, 1000 }))
	for _, at := range []struct{ thread, run string }{{"th", "r1"}, {"th", "resumed"}, {"fork", "r3"}} {
		h.At.Thread, h.At.Run = at.thread, at.run
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(50, 20))); err != nil {
			t.Fatal(err)
		}
		h.Next()
	}
	h.WantUsed("budget/run/th/r1/tokens", 210)
	h.WantUsed("budget/thread/th/tokens", 210)
	// No two threads share a name, and no name is too long for a store.
	for name, thread := range map[string]string{"budget/thread/a%2Fb/tokens": "a/b",
		"budget/thread/%F0%9F%92%B0/tokens": "💰"} {
		other := hooktest.New(t)
		other.At.Thread = thread
		if err := other.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))); err != nil {
			t.Fatal(err)
		}
		other.WantUsed(name, 2)
	}
	long := hooktest.New(t)
	long.At.Thread = strings.Repeat("💰", store.MaxName/4)
	if err := long.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))); err != nil {
		t.Error(err)
	}
}

// TestBudgetAfterACrash: what a call may have used before its process died stays counted
// beside the call of the next owner, so a crash is not a way around a limit.
func TestBudgetAfterACrash(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.Thread.Tokens = 210 }))
	next, stop := iter.Pull2(m.Model(hooktest.Says(holdfast.Delta{Text: "a"}, holdfast.Delta{Text: "b"}))(h.Context(),
		&holdfast.ModelRequest{}))
	next() // the process dies here
	defer stop()
	h.WantUsed("budget/thread/th/tokens", 100)
	h.States = state.NewLive(nil)
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(50, 20))); err != nil {
		t.Fatal(err)
	}
	h.WantUsed("budget/thread/th/tokens", 170)
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(1, 1))); holdfast.AsError(err).Code != codes.BudgetExceeded {
		t.Errorf("got %v", err)
	}
}

// TestBudgetOfAttempts: every attempt counts what it has reported.
func TestBudgetOfAttempts(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 1000 }))
	u := hooktest.Usage(50, 5)
	cut := hooktest.Breaking(&holdfast.ModelError{Retryable: true}, holdfast.Delta{Usage: u})
	if err := h.Try(m, cut, 0); err == nil {
		t.Fatal("no error")
	}
	if err := h.Try(m, hooktest.Costing(hooktest.Usage(50, 20)), 1); err != nil {
		t.Fatal(err)
	}
	h.WantUsed("budget/run/th/r1/tokens", 125)
	h.WantNotices()
}

// TestBudgetWithoutReports: without a report, what was reserved counts. A provider that
// refuses costs nothing.
func TestBudgetWithoutReports(t *testing.T) {
	t.Parallel()
	done := holdfast.Delta{Finish: holdfast.FinishStop}
	reports := func(u holdfast.Usage) holdfast.ModelCall { return hooktest.Costing(&u) }
	for name, tt := range map[string]struct {
		model holdfast.ModelCall
		want  int64
		said  bool
	}{
		"nothing":             {hooktest.Says(done), 100, true},
		"a report of nothing": {reports(holdfast.Usage{Model: "m"}), 100, true},
		"a total":             {reports(holdfast.Usage{TotalTokens: tokens(90)}), 90, false},
		"a total and input":   {reports(holdfast.Usage{TotalTokens: tokens(90), InputTokens: tokens(80)}), 90, false},
		"a total and output":  {reports(holdfast.Usage{TotalTokens: tokens(90), OutputTokens: tokens(80)}), 90, false},
		"input":               {reports(holdfast.Usage{InputTokens: tokens(7)}), 47, false},
		"output":              {reports(holdfast.Usage{OutputTokens: tokens(7)}), 67, false},
		"a total beyond its sum": {reports(holdfast.Usage{InputTokens: tokens(7), OutputTokens: tokens(3),
			TotalTokens: tokens(30)}),
			30, false},
		"nonsense":              {hooktest.Costing(hooktest.Usage(1<<62, 1<<62)), store.MaxAmount, false},
		"a cut":                 {hooktest.Breaking(context.Canceled, holdfast.Delta{Text: "x"}), 100, true},
		"a cut before anything": {hooktest.Breaking(context.Canceled), 100, true},
		"a failure":             {hooktest.Breaking(&holdfast.ModelError{Retryable: true}), 100, true},
		"a refusal":             {hooktest.Breaking(&holdfast.ModelError{}), 0, false},
		"come back later": {hooktest.Breaking(&holdfast.ModelError{Retryable: true, RetryAfter: time.Second}),
			0, false},
		"a late refusal": {hooktest.Breaking(&holdfast.ModelError{}, holdfast.Delta{Text: "x"}), 100, true},
	} {
		h := hooktest.New(t)
		m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = store.MaxAmount }))
		_ = h.Ask(m, tt.model)
		h.Next()
		h.Notices = h.Notices[:min(len(h.Notices), 1)]
		_ = h.Ask(m, hooktest.Costing(hooktest.Usage(0, 0)))
		if got := h.Used("budget/run/th/r1/tokens"); got != tt.want && name != "nonsense" {
			t.Errorf("%s: %d used, want %d", name, got, tt.want)
		}
		if said := strings.Contains(strings.Join(h.Notices, ""),
			`budget_unreported {"tokens":100,"cost":0.00,"currency":"USD"}`); said != tt.said {
			t.Errorf("%s: notices %q", name, h.Notices)
		}
	}
}

// TestBudgetUnreportedIsSaidOnce per run.
func TestBudgetUnreportedIsSaidOnce(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 1000 }))
	for range 3 {
		if err := h.Ask(m, hooktest.Says(holdfast.Delta{Finish: holdfast.FinishStop})); err != nil {
			t.Fatal(err)
		}
		h.Next()
	}
	h.WantUsed("budget/run/th/r1/tokens", 300)
	h.WantNotices(`holdfast.budget_unreported {"tokens":100,"cost":0.00,"currency":"USD"}`)
}

// TestBudgetOfAReaderThatPanics: the call is counted anyway.
func TestBudgetOfAReaderThatPanics(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(calls(func(o *budget.Options) { o.Run.Tokens = 1000 }))
	func() {
		defer func() { _ = recover() }()
		for range m.Model(hooktest.Costing(hooktest.Usage(50, 20)))(h.Context(), &holdfast.ModelRequest{}) {
			panic("reader")
		}
	}()
	h.WantUsed("budget/run/th/r1/tokens", 100)
}

// TestBudgetUnknownPrice: a model whose cost cannot be known is refused at its first
// call, unless that is to be ignored.
func TestBudgetUnknownPrice(t *testing.T) {
	t.Parallel()
	options := func(change func(*budget.Options)) budget.Options {
		return calls(func(o *budget.Options) {
			o.Run.Cost, o.Run.Tokens = money(t, "10"), 1000
			o.Prices = map[string]budget.Price{
				"known":   {Input: money(t, "10000")},
				"p/known": {Input: money(t, "10000")},
			}
			change(o)
		})
	}
	h := hooktest.New(t)
	m := budget.New(options(func(*budget.Options) {}))
	hooktest.WantCode(t, h.Ask(m, hooktest.Costing(hooktest.Usage(50, 20))), codes.MiddlewareFailed,
		"The model p/m has no price", "unknownPrice")
	h.WantUsed("budget/run/th/r1/cost", int64(money(t, "0.6")))
	h.Next()
	nameless := &holdfast.Usage{InputTokens: tokens(50), OutputTokens: tokens(20)}
	hooktest.WantCode(t, h.Ask(m, hooktest.Costing(nameless)), codes.MiddlewareFailed, "does not say its name")

	h = hooktest.New(t)
	m = budget.New(options(func(o *budget.Options) { o.UnknownPrice = "ignore" }))
	if err := h.Ask(m, hooktest.Costing(hooktest.Usage(50, 20))); err != nil {
		t.Error(err)
	}
	h.WantUsed("budget/run/th/r1/cost", 0)
	h.WantUsed("budget/run/th/r1/tokens", 70)

	h = hooktest.New(t)
	m = budget.New(options(func(o *budget.Options) { o.Model = "known" }))
	if err := h.Ask(m, hooktest.Costing(nameless)); err != nil {
		t.Error(err)
	}
	h.WantUsed("budget/run/th/r1/cost", int64(money(t, "0.5")))
}

// TestBudgetEstimate: without a configured number, a third of the bytes is reserved.
func TestBudgetEstimate(t *testing.T) {
	t.Parallel()
	h := hooktest.New(t)
	m := budget.New(budget.Options{Run: budget.Limit{Tokens: 1 << 40}, ReserveTokens: budget.ReserveTokens{Output: 1}})
	image := func(kind holdfast.SourceType, size int) holdfast.Part {
		return holdfast.Part{
			Type:   holdfast.PartImage,
			Source: &holdfast.Source{Type: kind, Value: strings.Repeat("A", size)},
		}
	}
	nine := "123456789"
	for name, tt := range map[string]struct {
		req  holdfast.ModelRequest
		want int64
	}{
		"nothing":      {holdfast.ModelRequest{}, 1},
		"instructions": {holdfast.ModelRequest{Instructions: []string{nine, "1"}}, 5},
		"a message": {holdfast.ModelRequest{Messages: []holdfast.Message{{Text: nine, Name: nine, Error: nine,
			EncryptedValue: nine}}},
			13},
		"a call": {holdfast.ModelRequest{Messages: []holdfast.Message{{Calls: []holdfast.ToolCall{{Name: nine,
			Arguments: []byte(nine)}}}}},
			7},
		"parts": {holdfast.ModelRequest{Messages: []holdfast.Message{{Parts: []holdfast.Part{{Text: nine},
			image(holdfast.SourceData, 30)}}}},
			14},
		"large media": {holdfast.ModelRequest{Messages: []holdfast.Message{{Parts: []holdfast.Part{
			image(holdfast.SourceData, 1<<20), image(holdfast.SourceURL, 5)}}}},
			2*4096 + 1},
		"tools": {holdfast.ModelRequest{Tools: []holdfast.ToolSpec{{Name: nine, Description: nine,
			Parameters: []byte(nine)}}},
			10},
		"context": {holdfast.ModelRequest{Context: []holdfast.ContextItem{{Description: nine, Value: nine}}}, 7},
	} {
		got := int64(-1)
		for range m.Model(hooktest.Says(holdfast.Delta{Text: "x"}))(h.Context(), &tt.req) {
			got = h.Used("budget/run/th/r1/tokens")
			break
		}
		h.Next()
		if want := tt.want; got < want || got != want {
			t.Errorf("%s: %d reserved, want %d", name, got, want)
		}
		h.Ledger = memstore.New()
	}
}

// kept notes until when accounts are kept.
type kept struct {
	store.Ledger
	until map[string]time.Time
}

func (k *kept) Reserve(ctx context.Context, r *store.Reservation) error {
	for _, e := range r.Entries {
		k.until[strings.SplitN(e.Account, "/", 3)[1]] = e.Expires
	}
	return k.Ledger.Reserve(ctx, r)
}

// TestBudgetOfASideRun: it counts for the user and the tenant like any other; the accounts of
// the run itself, of which nothing is stored, are soon forgotten.
func TestBudgetOfASideRun(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, side := range []bool{false, true} {
		h, ledger := hooktest.New(t), &kept{Ledger: memstore.New(), until: map[string]time.Time{}}
		h.Ledger, h.At.Side = ledger, side
		m := budget.New(calls(func(o *budget.Options) {
			o.Run.Tokens, o.Thread.Tokens, o.Tenant.Tokens = 250, 250, 250
			o.Now = func() time.Time { return now }
		}))
		if err := h.Ask(m, hooktest.Costing(hooktest.Usage(50, 20))); err != nil {
			t.Fatal(err)
		}
		for scope, until := range ledger.until {
			if soon := until.Equal(now.Add(time.Hour)); soon != (side && scope != "tenant") {
				t.Errorf("side %v: the account of the %s is kept until %v", side, scope, until)
			}
		}
		if len(ledger.until) != 3 {
			t.Errorf("the accounts are %v", ledger.until)
		}
	}
}
