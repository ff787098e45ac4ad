package budget

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/ledgers"
	"github.com/holdfast-agents/holdfast/middleware/internal/pause"
)

const (
	// reservePatience is how long a call waits for a store that does not answer, and
	// settlePatience how long a call that is over does.
	reservePatience = 30 * time.Second
	settlePatience  = 5 * time.Second
)

// spending is one call of the model.
type spending struct {
	*budgeter
	ctx    context.Context
	ledger holdfast.Ledger
	tenant string
	// id is this call's alone. What a call that died with its process had reserved
	// stays counted beside that of the call which repeats it: the money may be spent.
	id     string
	limits []allowance
	// input, output and cost are what was reserved.
	input, output int64
	cost          Money
	// began: something has come from the model. usage is what it last reported, and
	// failure its error.
	began   bool
	usage   *holdfast.Usage
	failure error
}

func ofUnit(unit string, tokens int64, cost Money) int64 {
	if unit == unitCost {
		return int64(cost)
	}
	return min(tokens, holdfast.MaxAmount)
}

// insist tries until the store answers, for a while.
func insist(ctx context.Context, patience time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f(ctx)
		if err == nil || ledgers.Refused(err) || pause.For(ctx, wait) != nil {
			return err
		}
	}
}

// name is what the price list calls the model that answers.
func (c *spending) name() string {
	if name := modelName(c.usage); name != "" {
		return name
	}
	return c.Model
}

// checkPrice refuses a model whose cost cannot be known. Its first answer is not
// kept, and what was reserved counts.
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
	return holdfast.Errorf(holdfast.CodeMiddlewareFailed, "The model %s has no price, so what it costs cannot be counted against the budget.", name).
		WithHint(`Add it to the budget's prices, or set its unknownPrice to ignore. Then POST the same threadId with "messages": [] and a new runId.`).
		With("model", name)
}

// spent is what the call has used. What was not reported is taken to be what was
// reserved, because it may have been used, and told is false then.
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
	return min(max(*u.InputTokens+*u.OutputTokens, reported(u.TotalTokens)), holdfast.MaxAmount), cost, true
}

// completed is the usage with what is missing: from the total, or as it was reserved.
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
	// No report, however wrong, is more than an account can count.
	input, output = min(input, holdfast.MaxAmount/2), min(output, holdfast.MaxAmount/2)
	u.InputTokens, u.OutputTokens = &input, &output
	return u
}

// refusedByProvider reports whether the provider has said that it does not answer,
// which costs nothing. Any other failure may have come after the work.
func refusedByProvider(err error) bool {
	var failed *holdfast.ModelError
	return errors.As(err, &failed) && (!failed.Retryable || failed.RetryAfter > 0)
}
