package budget

import (
	"math/big"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/internal/glob"
)

// tokensOfOnePrice is how many tokens a price is for.
const tokensOfOnePrice = 1_000_000

// Price is what a model costs per million tokens.
type Price struct {
	Input  Money `json:"input"`
	Output Money `json:"output"`
	// CachedInput is for input that the provider had in its cache, CacheWrite for
	// input that it puts there; without one the price is that of Input.
	CachedInput *Money `json:"cachedInput,omitempty"`
	CacheWrite  *Money `json:"cacheWrite,omitempty"`
	// Reasoning is for output that is reasoning; without it the price is that of
	// Output.
	Reasoning *Money `json:"reasoning,omitempty"`
}

// Cost is what the tokens cost, rounded up to a millionth. What was not reported
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

// atMost is what so many tokens cost at most, whatever kind they are of.
func (p Price) atMost(input, output int64) Money {
	var sum tokenCost
	sum.add(input, max(p.Input, or(p.CachedInput, 0), or(p.CacheWrite, 0)))
	sum.add(output, max(p.Output, or(p.Reasoning, 0)))
	return sum.money()
}

// tokenCost sums up tokens times prices, which may be more than 64 bits.
type tokenCost struct{ total big.Int }

func (c *tokenCost) add(tokens int64, perMillion Money) {
	var product big.Int
	c.total.Add(&c.total, product.Mul(big.NewInt(tokens), big.NewInt(int64(perMillion))))
}

func (c *tokenCost) money() Money {
	c.total.Add(&c.total, big.NewInt(tokensOfOnePrice-1))
	c.total.Quo(&c.total, big.NewInt(tokensOfOnePrice))
	if !c.total.IsInt64() || c.total.Int64() > holdfast.MaxAmount {
		return Money(holdfast.MaxAmount)
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

// priceList has prices by model, "provider/model". A * in a name stands for any
// text.
type priceList map[string]Price

// of returns a model's price: that of the longest name that matches.
func (l priceList) of(model string) (price Price, known bool) {
	best := ""
	for pattern, p := range l {
		longer := len(pattern) > len(best) || len(pattern) == len(best) && pattern < best
		if longer && glob.Match(pattern, model) {
			price, known, best = p, true, pattern
		}
	}
	return price, known
}

// atMost is what so many tokens cost at the dearest price.
func (l priceList) atMost(input, output int64) Money {
	var most Money
	for _, p := range l {
		most = max(most, p.atMost(input, output))
	}
	return most
}

// modelName is how prices name a model.
func modelName(u *holdfast.Usage) string {
	if u.Provider == "" || u.Model == "" {
		return u.Model
	}
	return u.Provider + "/" + u.Model
}
