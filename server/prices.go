package server

import (
	"encoding/json"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/threads"
)

// The cost of models, to show it: of a run, and of a thread. Budgets have prices of their own,
// which are the same unless they say otherwise.

// prices are those of the moment: see [Server.SetPrices].
type prices struct {
	now atomic.Pointer[map[string]budget.Price]
}

// priced returns usage with what it costs, and the sum; that is empty unless every model has a
// price.
func (p *prices) priced(usage []holdfast.Usage) (list []threads.Usage, sum json.Number) {
	now := *p.now.Load()
	total, all := budget.Money(0), len(usage) > 0
	list = []threads.Usage{}
	for _, u := range usage {
		cost, known := budget.CostOf(now, u)
		entry := threads.Usage{Usage: u}
		if known {
			entry.Cost, total = json.Number(cost.String()), total+cost
		}
		all = all && known
		list = append(list, entry)
	}
	if all {
		sum = json.Number(total.String())
	}
	return list, sum
}
