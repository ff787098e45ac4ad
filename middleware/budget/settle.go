package budget

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// settle replaces what was reserved for the call by what it has used, even if the call was
// cut off. If the store does not answer, the reservation counts until the account expires.
func (c *spending) settle() {
	ctx := context.WithoutCancel(c.ctx)
	tokens, cost, told := c.spent()
	actual := map[string]int64{}
	for _, l := range c.limits {
		actual[l.account] = ofUnit(l.unit, tokens, cost)
	}
	err := insist(ctx, settlePatience, func(ctx context.Context) error {
		return c.ledger.Settle(ctx, c.tenant, c.id, actual)
	})
	if err != nil {
		tokens, cost, told = c.input+c.output, c.cost, false
	}
	c.note(ctx, tokens, cost, told)
}

// note stores what the run has used, and sends notices.
func (c *spending) note(ctx context.Context, tokens int64, cost Money, told bool) {
	// Reading and writing the state cannot fail now, because it worked when the call began.
	was, _ := runState.Load(ctx)
	warnings := c.warnings(ctx, was.Warned)
	_, _ = runState.Update(ctx, func(r RunState) RunState {
		r.Tokens = min(r.Tokens+tokens, store.MaxAmount)
		r.Cost = min(r.Cost+cost, Money(store.MaxAmount))
		if c.usage != nil && priced(c.prices, c.name()) {
			r.Model = c.name()
		}
		r.Unreported = r.Unreported || !told
		for _, w := range warnings {
			r.Warned = append(slices.Clip(r.Warned), w.account)
		}
		return r
	})
	// Errors are ignored, because whatever keeps a notice from the log keeps the answer from
	// it too.
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

// warnings returns the limits that are nearly reached and have not been warned about.
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
			near = append(near, warning{Reached{Scope: l.scope, Unit: l.unit, Used: used[i], Limit: l.limit},
				l.account})
		}
	}
	return near
}
