// Package budget bounds what an agent uses, in tokens and in money.
//
// Before a call of the model, what it may use is reserved with all limits at once, in the
// store and therefore for all servers together. Afterwards the reservation is settled: what
// the call has used replaces what was reserved. So however many runs there are, a limit can
// be exceeded only by what a call uses beyond its reservation.
package budget

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
	"github.com/holdfast-agents/holdfast/store"
)

// New makes a middleware that bounds what calls of the model use. It panics if the options
// are invalid.
//
// An agent should have only one. The budgets of all agents count a tenant and a user
// together.
//
// Notices: [NoticeWarning], [NoticeExceeded], [NoticeUnreported].
func New(o Options) holdfast.Middleware {
	if err := o.Validate(); err != nil {
		panic("budget.New: " + err.Error())
	}
	b := &budgeter{Options: o.withDefaults(), prices: o.Prices}
	return holdfast.Middleware{
		Name: "holdfast.budget", States: []holdfast.State{threadState, runState}, Model: b.model,
		Notices: []string{NoticeWarning, NoticeExceeded, NoticeUnreported},
	}
}

func (b *budgeter) model(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			c, err := b.begin(ctx, req)
			if err != nil {
				yield(holdfast.Delta{}, err)
				return
			}
			c.stream(next(ctx, req), yield)
		}
	}
}

// begin reserves what the call may use. An error is why there is no call.
func (b *budgeter) begin(ctx context.Context, req *holdfast.ModelRequest) (*spending, error) {
	ledger, err := store.LedgerFrom(ctx)
	if err != nil {
		return nil, err
	}
	it := holdfast.IterationFrom(ctx)
	thread, run, err := accounts(ctx, &it)
	if err != nil {
		return nil, err
	}
	if err := b.takeAnswer(ctx, &it, &thread, &run); err != nil {
		return nil, err
	}
	now := shared.LedgerClock(ledger, b.Now)()
	c := &spending{
		budgeter: b,
		ctx:      ctx,
		ledger:   ledger,
		tenant:   it.Principal.Tenant,
		limits:   b.allowances(&it, thread, run, now),
		id:       shared.AccountName("budget", "call", it.Thread, it.Run, strconv.Itoa(it.Number), b.NewID()),
		input:    int64(b.ReserveTokens.Input),
		output:   b.ReserveTokens.Output,
	}
	if c.input == 0 {
		c.input = estimate(req)
	}
	c.cost = b.expected(run.Model, c.input, c.output)
	return c, c.reserve(now)
}

// expected returns the highest cost of a call, at the price of the model that answered
// last.
func (b *budgeter) expected(last string, input, output int64) Money {
	for _, name := range []string{last, b.Model} {
		if name == "" {
			continue
		}
		if price, known := b.prices.of(name); known {
			return price.atMost(input, output)
		}
	}
	return b.prices.atMost(input, output)
}

func (c *spending) reserve(now time.Time) error {
	r := &store.Reservation{Tenant: c.tenant, ID: c.id, Now: now}
	for _, l := range c.limits {
		r.Entries = append(r.Entries, store.Entry{
			Account: l.account, Amount: ofUnit(l.unit, c.input+c.output, c.cost), Limit: l.limit, Expires: l.expires,
		})
	}
	err := insist(c.ctx, reservePatience, func(ctx context.Context) error { return c.ledger.Reserve(ctx, r) })
	var full *store.LimitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &full):
		return c.exceeded(full)
	case shared.Refused(err):
		return err
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	}
	return shared.Unchecked("budget").Wrap(err)
}

// stream passes the answer on, and notes the usage that it reports.
func (c *spending) stream(deltas iter.Seq2[holdfast.Delta, error], yield func(holdfast.Delta, error) bool) {
	defer c.settle()
	for d, err := range deltas {
		if err != nil {
			c.failure = err
			yield(d, err)
			return
		}
		c.began = true
		if d.Usage != nil {
			c.usage = d.Usage
			if err := c.checkPrice(); err != nil {
				yield(holdfast.Delta{}, err)
				return
			}
		}
		if !yield(d, nil) {
			return
		}
	}
}
