package budget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/middleware/budget"
)

// worker is an agent whose model keeps calling tools; every call of the model reserves
// 100 tokens.
func worker(b budget.Options, model func(n int64) holdfast.Delta) holdfast.Agent {
	var n atomic.Int64
	b.ReserveTokens = budget.ReserveTokens{Input: 60, Output: 40}
	return holdfast.Agent{
		Name: "worker",
		Tools: []holdfast.Tool{
			holdfast.NewTool("work", "works", func(context.Context, struct{}) (string, error) { return "done", nil }),
		},
		Model: holdfast.ModelFunc(func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(yield func(holdfast.Delta, error) bool) {
				yield(model(n.Add(1)), ctx.Err())
			}
		}),
		Middleware: []holdfast.Middleware{budget.New(b)},
	}
}

func works(u *holdfast.Usage) holdfast.Delta {
	return holdfast.Delta{
		Call:   &holdfast.CallDelta{Name: "work", Arguments: "{}"},
		Usage:  u,
		Finish: holdfast.FinishToolCalls,
	}
}

// TestBudgetEndsARun: the run ends with the reason, and so do the next run of the thread
// and a fork of it.
func TestBudgetEndsARun(t *testing.T) {
	t.Parallel()
	h := hooktest.Serve(t, worker(budget.Options{Thread: budget.Limit{Tokens: 220}}, func(int64) holdfast.Delta {
		return works(hooktest.Usage(40, 10))
	}), nil)
	r := h.Run("go")
	if r.Outcome != agenttest.Failed || r.Code != codes.BudgetExceeded ||
		!strings.HasPrefix(r.Hint, "The thread has used 150 of its budget of 220 tokens; 100 more are needed "+
			"for the next call. Raise") {
		t.Errorf("got %+v", r)
	}
	if got := hooktest.Notices(r, "holdfast.budget_exceeded"); len(got) != 1 ||
		got[0] != `{"scope":"thread","unit":"tokens","used":150,"limit":220,"needed":100}` {
		t.Errorf("notices: %s", got)
	}
	if r := h.Resume(); r.Code != codes.BudgetExceeded {
		t.Errorf("resumed: %+v", r)
	}
	hooktest.Fork(t, h, "t", "t2")
	h.Thread("t2")
	if r := h.Resume(); r.Code != codes.BudgetExceeded || !strings.Contains(r.Hint, "used 150 of") {
		t.Errorf("forked: %+v", r)
	}
}

// TestBudgetAsksAPerson, who answers after the server was restarted.
func TestBudgetAsksAPerson(t *testing.T) {
	t.Parallel()
	agent := worker(budget.Options{
		Run: budget.Limit{Cost: money(t, "1")}, Then: "ask",
		Prices: map[string]budget.Price{"p/m": {Input: money(t, "10000"), Output: money(t, "10000")}},
	}, func(n int64) holdfast.Delta {
		if n > 2 {
			return holdfast.Delta{Text: "enough", Finish: holdfast.FinishStop}
		}
		return works(hooktest.Usage(40, 10))
	})
	c := hooktest.Serve(t, agent, nil)
	asked := func(r *agenttest.Result, message string) string {
		t.Helper()
		id := hooktest.Question(t, r)
		if q := r.Questions[0]; q.Reason != "holdfast:budget" || !strings.Contains(q.Message, message) {
			t.Errorf("got %+v", q)
		}
		return id
	}
	q := asked(c.Run("go"), "The run has used 0.50 of its budget of 1.00 USD; 1.00 more are needed for the "+
		"next call. May it go on?")
	c.Restart()
	if end := c.Decline(q); end.Code != codes.BudgetExceeded {
		t.Errorf("declined: %+v", end)
	}
	q = asked(c.Resume(), "has used 0.50 of its budget of 1.00 USD")
	q = asked(c.Answer(q, json.RawMessage(`{"allow":true,"raise":0.75}`)), "has used 1.00 of its budget of 1.75 USD")
	if end := c.Answer(q, json.RawMessage(`{"allow":true}`)); end.Outcome != agenttest.Success {
		t.Errorf("raised again: %+v", end)
	}
}

// TestBudgetOfManyRuns: eight runs on as many servers never use more than their tenant may,
// and stop only when another call does not fit.
func TestBudgetOfManyRuns(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for name, url := range map[string]string{"memory": "memory:", "redis": redis.URL()} {
		t.Run(name, func(t *testing.T) {
			db := hooktest.Open(t, url)
			const limit, reserved = 3000, 100
			var spent, above atomic.Int64
			agent := worker(budget.Options{Tenant: budget.Limit{Tokens: limit}}, func(n int64) holdfast.Delta {
				used := 20 + n*13%(reserved-19) // never more than is reserved
				if total := spent.Add(used); total > limit {
					above.Store(total)
				}
				return works(hooktest.Usage(used-10, 10))
			})
			var group sync.WaitGroup
			for i := range 8 {
				h := hooktest.Serve(t, agent, db)
				h.Thread(fmt.Sprint("t", i))
				group.Go(func() {
					if r := h.Run("go"); r.Code != codes.BudgetExceeded {
						t.Errorf("run %d: %+v", i, r)
					}
				})
			}
			group.Wait()
			if got := above.Load(); got != 0 {
				t.Errorf("%d tokens were used of %d", got, limit)
			}
			if got := spent.Load(); got < limit-8*reserved {
				t.Errorf("only %d tokens were used of %d", got, limit)
			}
		})
	}
}
