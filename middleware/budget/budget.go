// Package budget bounds what an agent uses, in tokens and in money.
package budget

import (
	"cmp"
	"crypto/rand"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// New bounds what calls of the model use, in tokens and in money. Before a call
// what it may need is reserved with all limits at once, in the store, for all servers
// together; afterwards what it has used takes the place of that. So however many runs
// there are, a limit is exceeded only by what a call uses beyond what was reserved
// for it.
//
// The run's stream, the log and the metrics say holdfast.budget_warning,
// holdfast.budget_exceeded and holdfast.budget_unreported. An agent has one Budget; the
// budgets of all agents count a tenant and a user together.
func New(o Options) holdfast.Middleware {
	if err := o.Validate(); err != nil {
		panic("budget.New: " + err.Error())
	}
	b := &budgeter{Options: o, prices: o.Prices}
	b.Currency = cmp.Or(o.Currency, "USD")
	b.ReserveTokens.Output = cmp.Or(o.ReserveTokens.Output, reservedOutput)
	b.WarnAt = cmp.Or(o.WarnAt, warnAt)
	if b.Now == nil {
		b.Now = time.Now
	}
	if b.NewID == nil {
		b.NewID = rand.Text
	}
	return holdfast.Middleware{
		Name: "holdfast.budget", States: []holdfast.AnyState{threadState, runState}, Model: b.model,
	}
}

type budgeter struct {
	Options
	prices priceList
}
