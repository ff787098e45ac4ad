package main

// The shop: what a model may do in it, and how much it may spend.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/state"
)

// Order is what the model writes to place an order.
type Order struct {
	Item  string `json:"item" jsonschema:"what to order"`
	Cents int64  `json:"cents" jsonschema:"the price in cents"`
}

// Warehouse takes orders. It is called with a key that is the same if a call runs again.
type Warehouse interface {
	Place(ctx context.Context, key string, o Order) (number string, err error)
}

// PlaceOrder is the tool. A call is never started twice, and if it is unknown whether it
// took effect, a person is asked.
func PlaceOrder(w Warehouse) holdfast.Tool {
	place := func(ctx context.Context, o Order) (string, error) {
		if o.Cents <= 0 {
			return "", errors.New("the price must be positive") // the model reads this and can try again
		}
		number, err := w.Place(ctx, holdfast.CallFrom(ctx).Key, o)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Ordered %s for %d cents; the order has the number %s.", o.Item, o.Cents, number), nil
	}
	return holdfast.NewTool("place_order", "Orders an item.", place, holdfast.WithEffect(holdfast.EffectOnce),
		holdfast.WithInDoubt(holdfast.DoubtAsk))
}

// Spent is what a thread has spent. It is stored with the thread.
type Spent struct {
	Cents int64 `json:"cents"`
}

var spent = state.Register(state.Spec[Spent]{Name: "shop.spent"})

// Allowance denies orders that would make a thread spend more than limit.
func Allowance(limit int64) holdfast.Middleware {
	return holdfast.Middleware{
		Name:   "shop.allowance",
		States: []holdfast.State{spent},
		Batch: func(ctx context.Context, b *holdfast.Batch) error {
			now, err := spent.Load(ctx)
			if err != nil {
				return err
			}
			for i, call := range b.Calls {
				var o Order
				if call.Name != "place_order" || json.Unmarshal(call.Arguments, &o) != nil {
					continue
				}
				if now.Cents+o.Cents > limit {
					b.Deny(i, fmt.Sprintf("Not ordered: only %d cents are left.", limit-now.Cents))
					continue
				}
				now.Cents += o.Cents
			}
			_, err = spent.Update(ctx, func(Spent) Spent { return now })
			return err
		},
	}
}

// warehouse takes every order, and the same order once.
type warehouse struct {
	mu     sync.Mutex
	byCall map[string]string
}

func (w *warehouse) Place(_ context.Context, key string, _ Order) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byCall == nil {
		w.byCall = map[string]string{}
	}
	if w.byCall[key] == "" {
		w.byCall[key] = fmt.Sprintf("A-%d", len(w.byCall)+1)
	}
	return w.byCall[key], nil
}
