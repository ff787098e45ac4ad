package server

import (
	"encoding/json"
	"maps"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/threads"
)

// What models cost, to show it: of a run, and of a thread. Budgets have prices of their own,
// which are the same unless they say otherwise.

// SetPrices replaces [Config].Prices, as [Server.Reload] replaces the agents. It does not
// change the prices of budgets, which belong to agents.
func (s *Server) SetPrices(prices map[string]budget.Price) {
	list := maps.Clone(prices)
	s.prices.now.Store(&list)
}

// prices are those of the moment.
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

// pricedRuns returns runs with what they cost.
func (p *prices) pricedRuns(runs []threads.Run, err error) ([]threads.Run, error) {
	for i := range runs {
		var usage []holdfast.Usage
		for _, u := range runs[i].Usage {
			usage = append(usage, u.Usage)
		}
		if usage != nil {
			runs[i].Usage, runs[i].Cost = p.priced(usage)
		}
	}
	return runs, err
}

// pricesOf returns the prices of a file, which has been checked.
func pricesOf(file *config.File) (map[string]budget.Price, error) {
	prices := map[string]budget.Price{}
	for model, price := range file.Prices {
		raw, err := json.Marshal(price)
		if err != nil {
			return nil, err
		}
		var p budget.Price
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, err
		}
		prices[model] = p
	}
	return prices, nil
}
