package budget

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
	"github.com/holdfast-agents/holdfast/store"
)

const (
	// reservePatience is how long a call waits for a store that does not answer, and
	// settlePatience how long it waits once it is over.
	reservePatience = 30 * time.Second
	settlePatience  = 5 * time.Second
)

// spending is one call of the model and what it spends.
type spending struct {
	*budgeter
	ctx    context.Context
	ledger store.Ledger
	tenant string
	// id is that of this call alone. If a call dies with its process, its reservation stays
	// counted beside that of the call that repeats it, because the money may be spent.
	id     string
	limits []allowance
	// input, output and cost are what was reserved.
	input, output int64
	cost          Money
	// began reports that something has come from the model. usage is the last report, and
	// failure the error.
	began   bool
	usage   *holdfast.Usage
	failure error
}

func ofUnit(unit string, tokens int64, cost Money) int64 {
	if unit == unitCost {
		return int64(cost)
	}
	return min(tokens, store.MaxAmount)
}

// insist repeats f until the store answers or patience runs out.
func insist(ctx context.Context, patience time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f(ctx)
		if err == nil || shared.Refused(err) || shared.Pause(ctx, wait) != nil {
			return err
		}
	}
}

// name returns the name of the answering model in the price list.
func (c *spending) name() string {
	if name := modelName(c.usage); name != "" {
		return name
	}
	return c.Model
}

// checkPrice refuses a model whose cost cannot be known. Its first answer is dropped, and
// what was reserved for it counts.
func (c *spending) checkPrice() error {
	_, known := c.prices.of(c.name())
	limited := slices.ContainsFunc(c.limits, func(l allowance) bool { return l.unit == unitCost })
	if known || !limited || c.UnknownPrice == UnknownPriceIgnore {
		return nil
	}
	name := c.name()
	if name == "" {
		name = "that does not say its name"
	}
	return holdfast.Errorf(codes.MiddlewareFailed,
		"The model %s has no price, so what it costs cannot be counted against the budget.", name).
		WithHint(`Add it to the budget's prices, or set its unknownPrice to ignore. Then POST the same threadId with `+
			`"messages": [] and a new runId.`).
		With("model", name)
}

// spent returns what the call has used. If nothing was reported, it is what was reserved,
// because that may have been used; told is false then.
func (c *spending) spent() (tokens int64, cost Money, told bool) {
	if !c.began && refusedByProvider(c.failure) {
		return 0, 0, true
	}
	if c.usage == nil || c.usage.InputTokens == nil && c.usage.OutputTokens == nil && c.usage.TotalTokens == nil {
		return c.input + c.output, c.cost, false
	}
	u := c.completed()
	price, known := c.prices.of(c.name())
	cost = price.Cost(u)
	if !known && c.UnknownPrice != UnknownPriceIgnore {
		cost = c.cost
	}
	return min(max(*u.InputTokens+*u.OutputTokens, reported(u.TotalTokens)), store.MaxAmount), cost, true
}

// completed returns the usage with missing numbers filled in, from the total or from what
// was reserved.
func (c *spending) completed() holdfast.Usage {
	u := *c.usage
	input, output := reported(u.InputTokens), reported(u.OutputTokens)
	total := reported(u.TotalTokens)
	switch {
	case u.InputTokens == nil && u.OutputTokens == nil:
		input = min(c.input, total)
		output = total - input
	case u.InputTokens == nil && u.TotalTokens == nil:
		input = c.input
	case u.InputTokens == nil:
		input = max(total-output, 0)
	case u.OutputTokens == nil && u.TotalTokens == nil:
		output = c.output
	case u.OutputTokens == nil:
		output = max(total-input, 0)
	}
	// However wrong a report is, it is no more than an account can hold.
	input, output = min(input, store.MaxAmount/2), min(output, store.MaxAmount/2)
	u.InputTokens, u.OutputTokens = &input, &output
	return u
}

// refusedByProvider reports whether the provider has refused to answer, which costs
// nothing. Any other failure may have come after the work was done.
func refusedByProvider(err error) bool {
	var failed *holdfast.ModelError
	return errors.As(err, &failed) && (!failed.Retryable || failed.RetryAfter > 0)
}
