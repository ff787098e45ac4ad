package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/permission"
)

func (w *worker) agent(name string, between ...holdfast.Middleware) holdfast.Agent {
	return holdfast.Agent{
		Name:       name,
		Model:      holdfast.ModelFunc(w.model),
		Tools:      w.tools(),
		Middleware: w.around(between...),
	}
}

// askFirst asks about the tool delicate.
func askFirst() holdfast.Middleware {
	return permission.New(permission.Options{
		Rules: []permission.Rule{{
			Tool: "delicate", Then: permission.Ask,
			Remember: []permission.Scope{permission.ScopeThread, permission.ScopeUser},
		}},
		Default: permission.Allow,
	})
}

// sturdy has all middleware whose state has to survive.
func (w *worker) sturdy() holdfast.Agent {
	return w.agent("sturdy",
		budget.New(budget.Options{
			Thread:        budget.Limit{Tokens: 1_000_000},
			ReserveTokens: budget.ReserveTokens{Input: 100, Output: 50},
		}),
		middleware.ErrorTracking(middleware.ErrorTrackingOptions{}),
		middleware.Continuation(middleware.ContinuationOptions{MaxIterations: 5}),
		askFirst(),
		middleware.CircuitBreaker(middleware.CircuitBreakerOptions{}),
	)
}

// asker asks before it does something delicate.
func (w *worker) asker() holdfast.Agent { return w.agent("asker", askFirst()) }

// cashier has a tool that asks, and then pays, once.
func (w *worker) cashier() holdfast.Agent {
	a := w.agent("cashier")
	a.Tools = append(a.Tools, holdfast.NewTool("pay", "Pays.", func(ctx context.Context, _ toolArgs) (string, error) {
		call := holdfast.CallFrom(ctx)
		if call.Answer == nil {
			return "", &holdfast.Interrupt{Reason: "input_required", Message: "May I?"}
		}
		w.note("paid thread=%s key=%s", call.Thread, call.Key)
		time.Sleep(w.delay)
		return "paid", nil
	}, holdfast.WithEffect(holdfast.EffectOnce)))
	return a
}

// spender has a budget that all its runs share. A token of input costs a millionth,
// one of output two.
func (w *worker) spender(tokens int64, cost string) (holdfast.Agent, error) {
	limit, err := budget.ParseMoney(cost)
	if err != nil {
		return holdfast.Agent{}, fmt.Errorf("--cost: %w", err)
	}
	return w.agent("spender", budget.New(budget.Options{
		Tenant:        budget.Limit{Tokens: tokens, Cost: limit},
		Prices:        map[string]budget.Price{"test/m": {Input: 1_000_000, Output: 2_000_000}},
		ReserveTokens: budget.ReserveTokens{Input: 100, Output: 50},
	})), nil
}

// The limit that the agents limited-0 to limited-7 share.
const (
	limitedAgents = 8
	limitedCalls  = 6
	limitedWindow = time.Second
)

// limited are agents that share one rate limit. Each runs one call at a time, so the
// last time that its clock was asked is when the call was admitted.
func (w *worker) limited() []holdfast.Agent {
	agents := make([]holdfast.Agent, limitedAgents)
	for i := range agents {
		var admitted atomic.Int64
		limit := middleware.RateLimit(middleware.RateLimitOptions{
			Name:    "shared",
			Limit:   limitedCalls,
			Window:  middleware.Duration(limitedWindow),
			MaxWait: middleware.Duration(time.Minute / 2),
			Now: func() time.Time {
				now := time.Now()
				admitted.Store(now.UnixMilli())
				return now
			},
		})
		agents[i] = w.agent(fmt.Sprintf("limited-%d", i), limit)
		agents[i].Tools = []holdfast.Tool{
			holdfast.NewTool("limited", "A tool of the tests.", func(ctx context.Context, _ toolArgs) (string, error) {
				w.note("admitted key=%s at=%d", holdfast.CallFrom(ctx).Key, admitted.Load())
				return "ok", nil
			}),
		}
	}
	return agents
}
