package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// orderIterations is how many iterations the agent orders may use.
const orderIterations = 2000

// orders is an agent that makes one call in each of as many iterations as a person
// says, and streams a sentence with each.
func orders() holdfast.Agent {
	r := rand.New(rand.NewPCG(1, 2)) // for one run at a time
	lookup := holdfast.NewTool("orders", "lists orders", func(context.Context, struct {
		Page int `json:"page"`
	}) (string, error) {
		return page(r), nil
	}, holdfast.WithEffect(holdfast.EffectPure))
	return holdfast.Agent{Name: "orders", Model: holdfast.ModelFunc(lookUpOrders), Tools: []holdfast.Tool{lookup}}
}

func lookUpOrders(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		n, err := strconv.Atoi(req.Messages[0].PlainText())
		if err != nil {
			yield(holdfast.Delta{}, fmt.Errorf("how many iterations: %w", err))
			return
		}
		for word := range strings.FieldsSeq(fmt.Sprintf("Step %d of the work is to look up the next page of orders "+
			"and to compare it with the page before", req.Iteration)) {
			if !yield(holdfast.Delta{Text: word + " "}, nil) {
				return
			}
		}
		if req.Iteration < n && !yield(
			holdfast.Delta{
				Call: &holdfast.CallDelta{Name: "orders", Arguments: fmt.Sprintf(`{"page":%d}`, req.Iteration)},
			},
			nil,
		) {
			return
		}
		yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
	}
}

// page is what the tool returns: JSON as services write it.
func page(r *rand.Rand) string {
	var rows []map[string]any
	for range 12 {
		rows = append(rows, map[string]any{
			"orderId":  fmt.Sprintf("ord_%08d", r.IntN(1e8)),
			"status":   []string{"shipped", "open", "returned"}[r.IntN(3)],
			"amount":   float64(r.IntN(1e6)) / 100,
			"currency": "EUR",
			"city":     []string{"Lisbon", "Oslo", "Porto", "Bergen"}[r.IntN(4)],
		})
	}
	b, err := json.Marshal(rows)
	if err != nil {
		panic(err) // plain values
	}
	return string(b)
}
