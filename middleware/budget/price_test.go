package budget_test

import (
	"math"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/budget"
)

func tokens(n int64) *int64 { return &n }

func TestCost(t *testing.T) {
	t.Parallel()
	cached, written, reasoning := money(t, "0.30"), money(t, "3.75"), money(t, "20")
	plain := budget.Price{Input: money(t, "3"), Output: money(t, "15")}
	full := plain
	full.CachedInput, full.CacheWrite, full.Reasoning = &cached, &written, &reasoning
	for name, tt := range map[string]struct {
		price budget.Price
		usage holdfast.Usage
		want  string
	}{
		"nothing reported": {full, holdfast.Usage{}, "0"},
		"input and output": {plain, holdfast.Usage{InputTokens: tokens(1_000_000), OutputTokens: tokens(100_000)},
			"4.5"},
		"rounded up": {budget.Price{Input: 1}, holdfast.Usage{InputTokens: tokens(1)}, "0.000001"},
		"details have a price": {full, holdfast.Usage{InputTokens: tokens(1_000_000), CachedInput: tokens(500_000),
			CacheWriteInput: tokens(100_000), OutputTokens: tokens(100_000), ReasoningTokens: tokens(50_000)},
			"3.475"},
		"details have none": {plain,
			holdfast.Usage{InputTokens: tokens(1_000_000), CachedInput: tokens(500_000),
				CacheWriteInput: tokens(100_000), OutputTokens: tokens(100_000), ReasoningTokens: tokens(50_000)},
			"4.5"},
		"details beyond all": {full, holdfast.Usage{InputTokens: tokens(1_000_000), CachedInput: tokens(5_000_000),
			CacheWriteInput: tokens(7), ReasoningTokens: tokens(7)},
			"0.3"},
		"negative": {plain, holdfast.Usage{InputTokens: tokens(-5), OutputTokens: tokens(100_000)}, "1.5"},
		"more than fits": {plain,
			holdfast.Usage{InputTokens: tokens(math.MaxInt64), OutputTokens: tokens(math.MaxInt64)},
			"9007199254.740992"},
	} {
		if got := tt.price.Cost(tt.usage); got != money(t, tt.want) {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// TestCostOf: usage costs what the longest name that matches its model says.
func TestCostOf(t *testing.T) {
	t.Parallel()
	prices := map[string]budget.Price{"acme/*": {Input: money(t, "1")}, "acme/large*": {Input: money(t, "2")}}
	for model, want := range map[string]string{"small": "1", "large-2026": "2"} {
		cost, known := budget.CostOf(prices,
			holdfast.Usage{Provider: "acme", Model: model, InputTokens: tokens(1_000_000)})
		if !known || cost != money(t, want) {
			t.Errorf("%s costs %s (%v), want %s", model, cost, known, want)
		}
	}
	if _, known := budget.CostOf(prices, holdfast.Usage{Provider: "other", Model: "large"}); known {
		t.Error("a model without a price has one")
	}
}
