package agenttest_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/state"
)

// A middleware that counts the orders in a thread, and what is left of the count
// after the process dies.
func ExampleNew() {
	t := exampleTest() // in a test, use the test's own t
	defer t.end()

	type orders struct{ Placed int }
	key := state.Register(state.Spec[orders]{Name: "example.orders"})
	counter := holdfast.Middleware{
		Name:   "example.orders",
		States: []holdfast.State{key},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, done *holdfast.IterationResult) {
			_, err := key.Update(ctx, func(o orders) orders { return orders{o.Placed + len(done.Calls)} })
			if err != nil {
				panic(err) // the server logs and counts it
			}
		},
	}
	order := holdfast.NewTool("order", "Orders an item.", func(context.Context, struct{}) (string, error) {
		return "ordered", nil
	})

	h := agenttest.New(t, agenttest.Config{
		Model: agenttest.Say(agenttest.Call("order", `{}`).And("order", `{}`),
			agenttest.Text("Both are ordered.")),
		Tools:      []holdfast.Tool{order},
		Middleware: []holdfast.Middleware{counter},
	})
	r := h.Run("Two of these, please.")
	fmt.Println(r.Outcome, len(r.Started), r.Answer())

	h.Restart()
	fmt.Println(agenttest.State(h, key).Placed)
	// Output:
	// success 2 Both are ordered.
	// 2
}

// A process dies while a tool runs, and another takes over. The tool must not run
// twice, so the model is told that the call's outcome is unknown.
func ExampleHarness_Crash() {
	t := exampleTest() // in a test, use the test's own t
	defer t.end()

	var h *agenttest.Harness
	pay := holdfast.NewTool("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
		h.Crash()
		return "", ctx.Err()
	}, holdfast.WithEffect(holdfast.EffectOnce))
	h = agenttest.New(t, agenttest.Config{
		Model: agenttest.Say(agenttest.Call("pay", `{}`), agenttest.Text("Please look whether it was paid.")),
		Tools: []holdfast.Tool{pay},
	})
	fmt.Println(h.Run("Pay.").Outcome)
	h.Restart()
	r := h.Resume()
	fmt.Println(r.Outcome, len(r.Started), r.Answer())
	fmt.Println(r.Notices()[0].Name)
	// Output:
	// cut
	// success 0 Please look whether it was paid.
	// holdfast.takeover
}

// A single hook, called as a function.
func ExampleContext() {
	t := exampleTest() // in a test, use the test's own t
	defer t.end()

	polite := func(ctx context.Context, b *holdfast.Batch) error {
		for i, c := range b.Calls {
			if strings.HasPrefix(c.Name, "shout") {
				b.Deny(i, "Not so loud.")
				if err := holdfast.Notify(ctx, "example.denied", c.Name); err != nil {
					return err
				}
			}
		}
		return nil
	}
	ctx, run := agenttest.Context(t)
	b := holdfast.NewBatch(&holdfast.Iteration{}, []holdfast.ToolCall{{Name: "say"}, {Name: "shout_at"}})
	err := polite(ctx, b)
	said, _ := b.Decided(0)
	shouted, _ := b.Decided(1)
	fmt.Println(err, said == nil, shouted.Text, string(run.Notices()[0].Value))
	// Output: <nil> true Not so loud. "shout_at"
}

// exampleT stands in for a test's t, which examples do not have.
type exampleT struct {
	testing.TB
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
}

func exampleTest() *exampleT {
	t := &exampleT{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *exampleT) Helper()                           {}
func (t *exampleT) Context() context.Context          { return t.ctx }
func (t *exampleT) Output() io.Writer                 { return io.Discard }
func (t *exampleT) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) Errorf(format string, args ...any) { fmt.Printf(format, args...) }
func (t *exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleT) end() {
	t.cancel()
	for _, f := range t.cleanups {
		f()
	}
}
