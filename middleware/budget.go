package middleware

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
)

const (
	budgetThenEnd = "end"
	budgetThenAsk = "ask"

	unknownPriceRefuse = "refuse"
	unknownPriceIgnore = "ignore"

	reservedOutput = 4096
	budgetWarnAt   = 80
)

// BudgetOptions configure [Budget]. At least one limit is needed.
type BudgetOptions struct {
	// Run, Thread, User and Tenant are what each of them may use. A run that is
	// resumed goes on with what it has left, and a fork shares the thread's budget
	// with its origin. Only User and Tenant may have a Window.
	Run    BudgetLimit `json:"run"`
	Thread BudgetLimit `json:"thread"`
	User   BudgetLimit `json:"user"`
	Tenant BudgetLimit `json:"tenant"`
	// Currency is what money is called in texts; it changes no number. Empty means
	// "USD".
	Currency string `json:"currency"`
	// Prices are by model, "provider/model", as its usage names it; a * stands for any
	// text, and the longest name that matches counts.
	Prices map[string]Price `json:"prices"`
	// Model is the model of which the price is reserved before the first answer has
	// named one, and of answers that name none. Empty: the dearest price is reserved.
	Model string `json:"model"`
	// ReserveTokens is what is set aside before each call.
	ReserveTokens ReserveTokens `json:"reserveTokens"`
	// Then is what happens at a limit: "end" ends the run, "ask" asks a person to
	// raise the limit. Empty means "end".
	Then string `json:"then"`
	// UnknownPrice is what becomes of a model without a price while there is a limit
	// of cost: "refuse" ends the run, "ignore" takes it for free. Empty means
	// "refuse".
	UnknownPrice string `json:"unknownPrice"`
	// WarnAt is the percentage of a limit at which a warning is said; 0 means 80.
	WarnAt int `json:"warnAt"`
	// Now is the clock; nil means [time.Now]. NewID makes the ids of reservations,
	// each of its own; nil means [rand.Text].
	Now   func() time.Time `json:"-"`
	NewID func() string    `json:"-"`
}

// BudgetLimit is what may be used: 0 is no limit.
type BudgetLimit struct {
	// Tokens are input and output together.
	Tokens int64 `json:"tokens"`
	// Cost is in units of the currency.
	Cost Money `json:"cost"`
	// Window is the time after which a budget begins anew, at multiples of it in UTC:
	// days at midnight, weeks on Monday. 0: never.
	Window Duration `json:"window"`
}

// ReserveTokens is what a call is expected to use at most.
type ReserveTokens struct {
	// Input is a number, or in a file also "estimate". 0 estimates: a third of the bytes
	// of what the model is sent.
	Input InputTokens `json:"input"`
	// Output is a number; 0 means 4096. Set it to what the model may answer at most.
	Output int64 `json:"output"`
}

// InputTokens is a number of tokens; 0 is an estimate for each call.
type InputTokens int64

// UnmarshalJSON reads a number or "estimate".
func (n *InputTokens) UnmarshalJSON(data []byte) error {
	if string(data) == `"estimate"` {
		*n = 0
		return nil
	}
	var v int64
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%.40s is not a number of tokens; write a number, or estimate", data)
	}
	*n = InputTokens(v)
	return nil
}

// Validate says what is wrong with the options, and what to write instead.
func (o BudgetOptions) Validate() error {
	hasCost, err := o.validateLimits()
	switch {
	case err != nil:
		return err
	case o.ReserveTokens.Input < 0 || o.ReserveTokens.Output < 0 || max(int64(o.ReserveTokens.Input), o.ReserveTokens.Output) > holdfast.MaxAmount/2:
		return errors.New("reserveTokens has a number that is negative or too large: write what one call may use")
	case !slices.Contains([]string{"", budgetThenEnd, budgetThenAsk}, o.Then):
		return fmt.Errorf("then is %q: write %q or %q", o.Then, budgetThenEnd, budgetThenAsk)
	case !slices.Contains([]string{"", unknownPriceRefuse, unknownPriceIgnore}, o.UnknownPrice):
		return fmt.Errorf("unknownPrice is %q: write %q or %q", o.UnknownPrice, unknownPriceRefuse, unknownPriceIgnore)
	case o.WarnAt < 0 || o.WarnAt > 100:
		return fmt.Errorf("warnAt is %d: write a percentage from 1 to 100", o.WarnAt)
	case !hasCost || o.UnknownPrice == unknownPriceIgnore:
		return o.validatePrices()
	case len(o.Prices) == 0:
		return errors.New("a limit of cost needs prices: write prices for your models, or limit tokens")
	case o.Model != "" && !priced(o.Prices, o.Model):
		return fmt.Errorf("model is %q and has no price: write one, or leave model out", o.Model)
	}
	return o.validatePrices()
}

func (o BudgetOptions) validateLimits() (hasCost bool, err error) {
	some := false
	for _, s := range o.scopes() {
		l := s.limit
		switch {
		case l.Tokens < 0 || l.Tokens > holdfast.MaxAmount:
			return false, fmt.Errorf("%s.tokens is %d: write 1 or more, or leave it out for no limit", s.name, l.Tokens)
		case l.Cost < 0 || l.Cost > Money(holdfast.MaxAmount):
			return false, fmt.Errorf("%s.cost is %s: write an amount up to %s, or leave it out for no limit", s.name, l.Cost, Money(holdfast.MaxAmount))
		case l.Window != 0 && (s.name == scopeRun || s.name == scopeThread):
			return false, fmt.Errorf("%s.window is set: only user and tenant have windows; leave it out", s.name)
		case l.Window != 0 && l.Window < Duration(time.Second):
			return false, fmt.Errorf("%s.window is %s: write 1s or more, or leave it out for ever", s.name, time.Duration(l.Window))
		}
		some = some || l.Tokens > 0 || l.Cost > 0
		hasCost = hasCost || l.Cost > 0
	}
	if !some {
		return false, errors.New("there is no limit: write tokens or cost under run, thread, user or tenant")
	}
	return hasCost, nil
}

func (o BudgetOptions) validatePrices() error {
	for name, p := range o.Prices {
		for _, m := range []Money{p.Input, p.Output, or(p.CachedInput, 0), or(p.CacheWrite, 0), or(p.Reasoning, 0)} {
			if name == "" || m < 0 || m > Money(holdfast.MaxAmount) {
				return fmt.Errorf("the price of %q cannot be: write provider/model, and what a million tokens cost, from 0 on", name)
			}
		}
	}
	return nil
}

func priced(prices map[string]Price, model string) bool {
	_, known := priceList(prices).of(model)
	return known
}

// The scopes of limits, from the narrowest on.
const scopeRun, scopeThread, scopeUser, scopeTenant = "run", "thread", "user", "tenant"

type budgetScope struct {
	name  string
	limit BudgetLimit
}

func (o *BudgetOptions) scopes() []budgetScope {
	return []budgetScope{{scopeRun, o.Run}, {scopeThread, o.Thread}, {scopeUser, o.User}, {scopeTenant, o.Tenant}}
}

// BudgetThread is what [Budget] keeps of a thread.
type BudgetThread struct {
	// Account is where the ledger counts the thread; a fork has that of its origin.
	Account string `json:"account,omitempty"`
	// Raised is by how much a person has raised the thread's limits, by account.
	Raised map[string]int64 `json:"raised,omitempty"`
}

// BudgetRun is what [Budget] keeps of a run.
type BudgetRun struct {
	// Account is where the ledger counts the run; a run that resumes it goes on there.
	Account string `json:"account,omitempty"`
	// Tokens and Cost are what the run has used so far.
	Tokens int64 `json:"tokens"`
	Cost   Money `json:"cost"`
	// Model is the last one that has answered and has a price.
	Model string `json:"model,omitempty"`
	// Raised is by how much a person has raised limits for this run, by account.
	Raised map[string]int64 `json:"raised,omitempty"`
	// Warned are the accounts of which it was said that they are nearly used up.
	Warned []string `json:"warned,omitempty"`
	// Unreported: it was said that the model does not report its usage.
	Unreported bool `json:"unreported,omitempty"`
	// Asked is the limit that a person is asked about.
	Asked BudgetReached `json:"asked,omitzero"`
}

// BudgetReached is a limit that stands in the way of a call. Its numbers are tokens,
// or millionths of the currency's unit.
type BudgetReached struct {
	Scope   string `json:"scope,omitempty"`
	Unit    string `json:"unit,omitempty"` // tokens or cost
	Account string `json:"account,omitempty"`
	Used    int64  `json:"used"`
	// Needed is what is to be set aside for the next call.
	Needed int64 `json:"needed"`
	// Limit is with what a person has raised it by, Base as it is configured.
	Limit int64 `json:"limit"`
	Base  int64 `json:"base"`
}

var (
	budgetThreadState = holdfast.RegisterState(holdfast.StateSpec[BudgetThread]{
		Name: "holdfast.budget", Version: 1, Scope: holdfast.ScopeThread,
	})
	budgetRunState = holdfast.RegisterState(holdfast.StateSpec[BudgetRun]{
		Name: "holdfast.budget_run", Version: 1, Scope: holdfast.ScopeRun,
	})
)

// Budget bounds what calls of the model use, in tokens and in money. Before a call
// what it may need is reserved with all limits at once, in the store, for all servers
// together; afterwards what it has used takes the place of that. So however many runs
// there are, a limit is exceeded only by what a call uses beyond what was reserved
// for it.
//
// The run's stream, the log and the metrics say holdfast.budget_warning,
// holdfast.budget_exceeded and holdfast.budget_unreported. An agent has one Budget; the
// budgets of all agents count a tenant and a user together.
func Budget(o BudgetOptions) holdfast.Middleware {
	mustBeValid("Budget", o)
	b := &budgeter{BudgetOptions: o, prices: o.Prices}
	b.Currency = cmp.Or(o.Currency, "USD")
	b.ReserveTokens.Output = cmp.Or(o.ReserveTokens.Output, reservedOutput)
	b.WarnAt = cmp.Or(o.WarnAt, budgetWarnAt)
	if b.Now == nil {
		b.Now = time.Now
	}
	if b.NewID == nil {
		b.NewID = rand.Text
	}
	return holdfast.Middleware{
		Name: "holdfast.budget", States: []holdfast.AnyState{budgetThreadState, budgetRunState}, Model: b.model,
	}
}

type budgeter struct {
	BudgetOptions
	prices priceList
}
