package budget_test

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
)

// A thread may cost 2.50, and all threads of the tenant 100 in 30 days. A call that might
// exceed a limit is not made.
func ExampleNew() {
	usd := func(text string) budget.Money {
		m, err := budget.ParseMoney(text)
		if err != nil {
			panic(err)
		}
		return m
	}
	spending := budget.New(budget.Options{
		Thread:        budget.Limit{Cost: usd("2.50")},
		Tenant:        budget.Limit{Cost: usd("100"), Window: middleware.Duration(30 * 24 * time.Hour)},
		Prices:        map[string]budget.Price{"openai/gpt-*": {Input: usd("2.50"), Output: usd("10")}},
		ReserveTokens: budget.ReserveTokens{Output: 16_000},
	})

	// A model that needs a lot and never finishes.
	step := holdfast.NewTool("step", "Goes on.", func(context.Context, struct{}) (string, error) { return "done", nil })
	input, output := int64(200_000), int64(9_000)
	hungry := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			used := holdfast.Usage{Provider: "openai", Model: "gpt-x", InputTokens: &input, OutputTokens: &output}
			yield(holdfast.Delta{Call: &holdfast.CallDelta{Name: "step"}, Usage: &used,
				Finish: holdfast.FinishToolCalls}, nil)
		}
	})
	agent := holdfast.Agent{
		Name:       "helper",
		Model:      hungry,
		Tools:      []holdfast.Tool{step},
		Middleware: []holdfast.Middleware{spending},
	}
	fmt.Println(regexp.MustCompile("The thread has used .* its budget of [^;]*").
		FindString(hooktest.RunAgent(agent, "Read all of it.")))
	// Output: The thread has used 2.36 of its budget of 2.50 USD
}

func ExampleNew_page() {
	budget.New(budget.Options{
		Run:           budget.Limit{Tokens: 200_000},
		Thread:        budget.Limit{Cost: 2_500_000}, // millionths; budget.ParseMoney reads "2.50"
		Prices:        map[string]budget.Price{"openai/*": {Input: 5_000_000, Output: 20_000_000}},
		ReserveTokens: budget.ReserveTokens{Output: 8000},
	})
	// Output:
}
