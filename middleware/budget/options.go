package budget

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/store"
)

// The options of a budget, with their defaults and everything that can be wrong with
// them.

// The choices at a limit.
const (
	// ThenEnd ends the run.
	ThenEnd = "end"
	// ThenAsk asks a person to raise the limit.
	ThenAsk = "ask"
)

// The choices for a model without a price while there is a limit of cost.
const (
	// UnknownPriceRefuse ends the run.
	UnknownPriceRefuse = "refuse"
	// UnknownPriceIgnore counts its calls as free.
	UnknownPriceIgnore = "ignore"
)

const (
	reservedOutput = 4096
	warnAt         = 80
)

// Options are the options of [New]. At least one limit is needed.
type Options struct {
	// Run is what a run may use. A run that is resumed has what was left of its budget. It has
	// no Window.
	Run Limit `json:"run"`
	// Thread is what a thread may use. A fork shares the budget of the thread it came from. It
	// has no Window.
	Thread Limit `json:"thread"`
	// User is what all runs of a user may use.
	User Limit `json:"user"`
	// Tenant is what all runs of a tenant may use.
	Tenant Limit `json:"tenant"`
	// Currency is the name of the currency in texts; it does not change any number. Empty
	// means "USD".
	Currency string `json:"currency"`
	// Prices are the prices of models by "provider/model", as the usage names them. A *
	// matches any text; of several names that match, the longest applies.
	Prices map[string]Price `json:"prices"`
	// Model is the model whose price applies before the first answer has named one, and to
	// answers that do not name one. If it is empty, the highest price is reserved.
	Model string `json:"model"`
	// ReserveTokens is what is reserved before each call.
	ReserveTokens ReserveTokens `json:"reserveTokens"`
	// Then is what happens at a limit: [ThenEnd] (default) or [ThenAsk].
	Then string `json:"then"`
	// UnknownPrice is what happens to a model without a price while there is a limit of
	// cost: [UnknownPriceRefuse] (default) or [UnknownPriceIgnore].
	UnknownPrice string `json:"unknownPrice"`
	// WarnAt is the percentage of a limit at which [NoticeWarning] is sent; 0 means 80.
	WarnAt int `json:"warnAt"`
	// Now is the clock; nil means that of the store, if it has one, or [time.Now].
	Now func() time.Time `json:"-"`
	// NewID makes a unique id for each reservation; nil means [rand.Text].
	NewID func() string `json:"-"`
}

// Limit is what may be used; 0 is no limit.
type Limit struct {
	// Tokens are input and output together.
	Tokens int64 `json:"tokens"`
	// Cost is in units of the currency.
	Cost Money `json:"cost"`
	// Window is the time after which the budget is reset. Windows begin at multiples of
	// their length, in UTC: days at midnight, weeks on Monday. 0 means never.
	Window middleware.Duration `json:"window"`
}

// ReserveTokens is how many tokens a call is expected to use at most.
type ReserveTokens struct {
	// Input is a number; in a file it can also be "estimate". 0 means an estimate for each
	// call: a third of the bytes that the model is sent.
	Input InputTokens `json:"input"`
	// Output is a number; 0 means 4096. Set it to the longest possible answer.
	Output int64 `json:"output"`
}

// InputTokens is a number of tokens; 0 means an estimate for each call.
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

func (o Options) withDefaults() Options {
	o.Currency = cmp.Or(o.Currency, "USD")
	o.ReserveTokens.Output = cmp.Or(o.ReserveTokens.Output, reservedOutput)
	o.Then = cmp.Or(o.Then, ThenEnd)
	o.UnknownPrice = cmp.Or(o.UnknownPrice, UnknownPriceRefuse)
	o.WarnAt = cmp.Or(o.WarnAt, warnAt)
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o Options) Validate() error {
	o = o.withDefaults()
	hasCost, err := o.validateLimits()
	switch {
	case err != nil:
		return err
	case o.ReserveTokens.Input < 0 || o.ReserveTokens.Output < 0 ||
		max(int64(o.ReserveTokens.Input), o.ReserveTokens.Output) > store.MaxAmount/2:
		return errors.New("reserveTokens has a number that is negative or too large: write what one call may use")
	case !slices.Contains([]string{ThenEnd, ThenAsk}, o.Then):
		return fmt.Errorf("then is %q: write %q or %q", o.Then, ThenEnd, ThenAsk)
	case !slices.Contains([]string{UnknownPriceRefuse, UnknownPriceIgnore}, o.UnknownPrice):
		return fmt.Errorf("unknownPrice is %q: write %q or %q", o.UnknownPrice, UnknownPriceRefuse, UnknownPriceIgnore)
	case o.WarnAt < 0 || o.WarnAt > 100:
		return fmt.Errorf("warnAt is %d: write a percentage from 1 to 100", o.WarnAt)
	case !hasCost || o.UnknownPrice == UnknownPriceIgnore:
		return o.validatePrices()
	case len(o.Prices) == 0:
		return errors.New("a limit of cost needs prices: write prices for your models, or limit tokens")
	case o.Model != "" && !priced(o.Prices, o.Model):
		return fmt.Errorf("model is %q and has no price: write one, or leave model out", o.Model)
	}
	return o.validatePrices()
}

func (o Options) validateLimits() (hasCost bool, err error) {
	some := false
	for _, s := range o.scopes() {
		l := s.limit
		switch {
		case l.Tokens < 0 || l.Tokens > store.MaxAmount:
			return false, fmt.Errorf("%s.tokens is %d: write 1 or more, or leave it out for no limit", s.name, l.Tokens)
		case l.Cost < 0 || l.Cost > Money(store.MaxAmount):
			return false, fmt.Errorf("%s.cost is %s: write an amount up to %s, or leave it out for no limit", s.name,
				l.Cost, Money(store.MaxAmount))
		case l.Window != 0 && (s.name == scopeRun || s.name == scopeThread):
			return false, fmt.Errorf("%s.window is set: only user and tenant have windows; leave it out", s.name)
		case l.Window != 0 && l.Window < middleware.Duration(time.Second):
			return false, fmt.Errorf("%s.window is %s: write 1s or more, or leave it out for no window", s.name,
				time.Duration(l.Window))
		}
		some = some || l.Tokens > 0 || l.Cost > 0
		hasCost = hasCost || l.Cost > 0
	}
	if !some {
		return false, errors.New("there is no limit: write tokens or cost under run, thread, user or tenant")
	}
	return hasCost, nil
}

func (o Options) validatePrices() error {
	for name, p := range o.Prices {
		for _, m := range []Money{p.Input, p.Output, or(p.CachedInput, 0), or(p.CacheWrite, 0), or(p.Reasoning, 0)} {
			if name == "" || m < 0 || m > Money(store.MaxAmount) {
				return fmt.Errorf("the price of %q is invalid: write provider/model, and what a "+
					"million tokens cost, 0 or more", name)
			}
		}
	}
	return nil
}

func priced(prices map[string]Price, model string) bool {
	_, known := priceList(prices).of(model)
	return known
}

// The scopes of limits, beginning with the narrowest.
const scopeRun, scopeThread, scopeUser, scopeTenant = "run", "thread", "user", "tenant"

type scope struct {
	name  string
	limit Limit
}

func (o *Options) scopes() []scope {
	return []scope{{scopeRun, o.Run}, {scopeThread, o.Thread}, {scopeUser, o.User}, {scopeTenant, o.Tenant}}
}

type budgeter struct {
	Options
	prices priceList
}
