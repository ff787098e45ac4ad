package budget

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// settle puts what the call has used in the place of what was reserved for it. It
// does so for a call that was cut, too. If the store does not answer, what was
// reserved counts until the account expires.
func (c *spending) settle() {
	ctx := context.WithoutCancel(c.ctx)
	tokens, cost, told := c.spent()
	actual := map[string]int64{}
	for _, l := range c.limits {
		actual[l.account] = ofUnit(l.unit, tokens, cost)
	}
	err := insist(ctx, settlePatience, func(ctx context.Context) error { return c.ledger.Settle(ctx, c.tenant, c.id, actual) })
	if err != nil {
		tokens, cost, told = c.input+c.output, c.cost, false
	}
	c.note(ctx, tokens, cost, told)
}

// note keeps what the run has used, and says what people need to know.
func (c *spending) note(ctx context.Context, tokens int64, cost Money, told bool) {
	// The state was read and written when the call began, so neither fails now.
	was, _ := runState.Load(ctx)
	warnings := c.warnings(ctx, was.Warned)
	_, _ = runState.Update(ctx, func(r RunState) RunState {
		r.Tokens = min(r.Tokens+tokens, holdfast.MaxAmount)
		r.Cost = min(r.Cost+cost, Money(holdfast.MaxAmount))
		if c.usage != nil && priced(c.prices, c.name()) {
			r.Model = c.name()
		}
		r.Unreported = r.Unreported || !told
		for _, w := range warnings {
			r.Warned = append(slices.Clip(r.Warned), w.account)
		}
		return r
	})
	// A notice that cannot be written ends nothing: whatever keeps it from the log
	// keeps the answer from it, too.
	for _, w := range warnings {
		_ = holdfast.Notify(ctx, NoticeWarning, c.notice(&w.Reached))
	}
	if !told && !was.Unreported {
		_ = holdfast.Notify(ctx, NoticeUnreported, unreported{Tokens: tokens, Cost: cost, Currency: c.Currency})
	}
}

// warning is a limit that is nearly reached.
type warning struct {
	Reached
	account string
}

// warnings are the limits that are nearly reached, of those that were not said yet.
func (c *spending) warnings(ctx context.Context, said []string) []warning {
	var limits []allowance
	var names []string
	for _, l := range c.limits {
		if !slices.Contains(said, l.account) {
			limits, names = append(limits, l), append(names, l.account)
		}
	}
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	used, err := c.ledger.Used(ctx, c.tenant, names)
	if err != nil {
		return nil // the next call asks again
	}
	var near []warning
	for i, l := range limits {
		// Both products fit: amounts are at most 2^53.
		if used[i]*100 >= l.limit*int64(c.WarnAt) {
			near = append(near, warning{Reached{Scope: l.scope, Unit: l.unit, Used: used[i], Limit: l.limit}, l.account})
		}
	}
	return near
}
