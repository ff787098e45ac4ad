package budget_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redistest"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/internal/hooktest"
	"github.com/holdfast-agents/holdfast/server"
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
	s := hooktest.Serve(t, worker(budget.Options{Thread: budget.Limit{Tokens: 220}},
		func(int64) holdfast.Delta { return works(hooktest.Usage(40, 10)) }))
	events := s.Post("t", "r1", nil)
	end := events.Last()
	if end.Type != "RUN_ERROR" || end.Code != codes.BudgetExceeded ||
		!strings.HasPrefix(
			end.Hint(),
			"The thread has used 150 of its budget of 220 tokens; 100 more are needed for the next call. Raise",
		) {
		t.Errorf("got %+v", end)
	}
	if got := events.Notices(
		"holdfast.budget_exceeded",
	); len(got) != 1 ||
		got[0] != `{"scope":"thread","unit":"tokens","used":150,"limit":220,"needed":100}` {
		t.Errorf("notices: %s", got)
	}
	if end := s.Post("t", "r2", map[string]any{}).Last(); end.Code != codes.BudgetExceeded {
		t.Errorf("resumed: %+v", end)
	}
	s.Fork("t", "t2")
	if end := s.Post("t2", "r3", map[string]any{}).
		Last(); end.Code != codes.BudgetExceeded ||
		!strings.Contains(end.Hint(), "used 150 of") {
		t.Errorf("forked: %+v", end)
	}
}

// TestBudgetAsksAPerson, who answers after the server was restarted.
func TestBudgetAsksAPerson(t *testing.T) {
	t.Parallel()
	store := "file:" + filepath.Join(t.TempDir(), "data")
	agent := worker(budget.Options{
		Run: budget.Limit{Cost: money(t, "1")}, Then: "ask",
		Prices: map[string]budget.Price{"p/m": {Input: money(t, "10000"), Output: money(t, "10000")}},
	}, func(n int64) holdfast.Delta {
		if n > 2 {
			return holdfast.Delta{Text: "enough", Finish: holdfast.FinishStop}
		}
		return works(hooktest.Usage(40, 10))
	})
	c := hooktest.Converse(t, agent, hooktest.In(store))
	asked := func(s hooktest.Stream, message string) string {
		t.Helper()
		id := s.Question(t)
		if q := s.Last().Outcome.Interrupts[0]; q.Reason != "holdfast:budget" || !strings.Contains(q.Message, message) {
			t.Errorf("got %+v", q)
		}
		return id
	}
	q := asked(
		c.Say("go"),
		"The run has used 0.50 of its budget of 1.00 USD; 1.00 more are needed for the next call. May it go on?",
	)
	c.Restart()
	if end := c.Decline(q).Last(); end.Code != codes.BudgetExceeded {
		t.Errorf("declined: %+v", end)
	}
	q = asked(c.GoOn(), "has used 0.50 of its budget of 1.00 USD")
	q = asked(c.Answer(q, `{"allow":true,"raise":0.75}`), "has used 1.00 of its budget of 1.75 USD")
	if end := c.Answer(q, `{"allow":true}`).Last(); end.Outcome.Type != "success" {
		t.Errorf("raised again: %+v", end)
	}
}

// TestBudgetOfManyRuns: eight runs on two servers never use more than their tenant may,
// and stop only when another call does not fit.
func TestBudgetOfManyRuns(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for name, change := range map[string]func(*server.Config){
		"memory": hooktest.Sharing(memstore.New()),
		"redis":  hooktest.In(redis.URL()),
	} {
		t.Run(name, func(t *testing.T) {
			const limit, reserved = 3000, 100
			var spent, above atomic.Int64
			agent := worker(budget.Options{Tenant: budget.Limit{Tokens: limit}}, func(n int64) holdfast.Delta {
				used := 20 + n*13%(reserved-19) // never more than is reserved
				if total := spent.Add(used); total > limit {
					above.Store(total)
				}
				return works(hooktest.Usage(used-10, 10))
			})
			servers := []*hooktest.Server{hooktest.Serve(t, agent, change), hooktest.Serve(t, agent, change)}
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					if end := servers[i%2].Post(fmt.Sprint("t", i), "r", nil).Last(); end.Code != codes.BudgetExceeded {
						t.Errorf("run %d: %+v", i, end)
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
