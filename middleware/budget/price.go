package budget

import (
	"math/big"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/shared"
	"github.com/holdfast-agents/holdfast/store"
)

// tokensOfOnePrice is the number of tokens that a price is for.
const tokensOfOnePrice = 1_000_000

// Price is what a model costs per million tokens.
type Price struct {
	// Input is the price of input.
	Input Money `json:"input"`
	// Output is the price of output.
	Output Money `json:"output"`
	// CachedInput is the price of input that the provider reads from its cache; nil means the
	// price of Input.
	CachedInput *Money `json:"cachedInput,omitempty"`
	// CacheWrite is the price of input that the provider writes to its cache; nil means the
	// price of Input.
	CacheWrite *Money `json:"cacheWrite,omitempty"`
	// Reasoning is the price of output that is reasoning; nil means the price of Output.
	Reasoning *Money `json:"reasoning,omitempty"`
}

// Cost returns the cost of the tokens, rounded up to a millionth. Usage that was not reported
// costs nothing.
func (p Price) Cost(u holdfast.Usage) Money {
	input, output := reported(u.InputTokens), reported(u.OutputTokens)
	cached := min(reported(u.CachedInput), input)
	written := min(reported(u.CacheWriteInput), input-cached)
	reasoning := min(reported(u.ReasoningTokens), output)
	var sum tokenCost
	sum.add(input-cached-written, p.Input)
	sum.add(cached, or(p.CachedInput, p.Input))
	sum.add(written, or(p.CacheWrite, p.Input))
	sum.add(output-reasoning, p.Output)
	sum.add(reasoning, or(p.Reasoning, p.Output))
	return sum.money()
}

// atMost returns the highest cost of so many tokens, whatever their kind.
func (p Price) atMost(input, output int64) Money {
	var sum tokenCost
	sum.add(input, max(p.Input, or(p.CachedInput, 0), or(p.CacheWrite, 0)))
	sum.add(output, max(p.Output, or(p.Reasoning, 0)))
	return sum.money()
}

// tokenCost is a sum of tokens times prices, which may need more than 64 bits.
type tokenCost struct{ total big.Int }

func (c *tokenCost) add(tokens int64, perMillion Money) {
	var product big.Int
	c.total.Add(&c.total, product.Mul(big.NewInt(tokens), big.NewInt(int64(perMillion))))
}

func (c *tokenCost) money() Money {
	c.total.Add(&c.total, big.NewInt(tokensOfOnePrice-1))
	c.total.Quo(&c.total, big.NewInt(tokensOfOnePrice))
	if !c.total.IsInt64() || c.total.Int64() > store.MaxAmount {
		return Money(store.MaxAmount)
	}
	return Money(c.total.Int64())
}

func reported(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}

func or(m *Money, fallback Money) Money {
	if m == nil {
		return fallback
	}
	return *m
}

// priceList has prices by model, "provider/model". A * in a name matches any text.
type priceList map[string]Price

// of returns the price of a model, which is that of the longest name that matches.
func (l priceList) of(model string) (price Price, known bool) {
	best := ""
	for pattern, p := range l {
		longer := len(pattern) > len(best) || len(pattern) == len(best) && pattern < best
		if longer && shared.Matches(pattern, model) {
			price, known, best = p, true, pattern
		}
	}
	return price, known
}

// CostOf returns what usage costs at prices by "provider/model", as in [Options].Prices; false
// if the model has no price.
func CostOf(prices map[string]Price, u holdfast.Usage) (cost Money, known bool) {
	price, known := priceList(prices).of(modelName(&u))
	return price.Cost(u), known
}

// atMost returns the cost of so many tokens at the highest price.
func (l priceList) atMost(input, output int64) Money {
	var most Money
	for _, p := range l {
		most = max(most, p.atMost(input, output))
	}
	return most
}

// modelName returns the name of a model as prices have it.
func modelName(u *holdfast.Usage) string {
	if u.Provider == "" || u.Model == "" {
		return u.Model
	}
	return u.Provider + "/" + u.Model
}
