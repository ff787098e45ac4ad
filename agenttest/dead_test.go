package agenttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/store"
)

// TestADeadProcessChangesNothing: code of a dead process that is still running has no
// visible effect.
func TestADeadProcessChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *agenttest.Harness
		var later []string
		reservation := &store.Reservation{
			Tenant:  "default",
			ID:      "r",
			Now:     time.Now(),
			Entries: []store.Entry{{Account: "a", Amount: 1}},
		}
		pay := holdfast.NewTool("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
			ledger, err := store.LedgerFrom(ctx)
			if err != nil {
				return "", err
			}
			if err := ledger.Reserve(ctx, reservation); err != nil {
				return "", err
			}
			h.Crash()
			other := *reservation
			other.ID = "r2"
			return "paid", errors.Join(ledger.Reserve(ctx, &other), ledger.Settle(ctx, "default", "r", nil))
		}, holdfast.WithEffect(holdfast.EffectOnce))
		note := func(what string) { later = append(later, what) }
		witness := holdfast.Middleware{
			Name:            "test.witness",
			Tool:            func(next holdfast.ToolHandler) holdfast.ToolHandler { return next },
			AfterIteration:  func(context.Context, *holdfast.Iteration, *holdfast.IterationResult) { note("after") },
			BeforeIteration: func(context.Context, *holdfast.Iteration) error { note("before"); return nil },
			Batch:           func(context.Context, *holdfast.Batch) error { note("batch"); return nil },
		}
		h = agenttest.New(t, agenttest.Config{
			Model:      agenttest.Say(agenttest.Call("pay", `{}`), agenttest.Text("never said")),
			Tools:      []holdfast.Tool{pay},
			Middleware: []holdfast.Middleware{witness},
		})
		ended(t, h.Run("pay"), agenttest.Cut)
		if got := strings.Join(later, " "); got != "before batch" {
			t.Errorf("hooks that were called: %s", got)
		}
		var used []int64
		var err error
		h.Restart(holdfast.Middleware{
			Name: "test.reader",
			BeforeIteration: func(ctx context.Context, _ *holdfast.Iteration) error {
				ledger, e := store.LedgerFrom(ctx)
				if e == nil {
					used, err = ledger.Used(ctx, "default", []string{"a"})
				}
				return e
			},
		})
		ended(t, h.Resume(), agenttest.Success)
		if err != nil || len(used) != 1 || used[0] != 1 {
			t.Errorf("the ledger has %v, %v; want what was reserved before the crash", used, err)
		}
	})
}

// TestAToolThatIgnoresItsContextIsFound: such a tool outlives its process, and the
// test fails.
func TestAToolThatIgnoresItsContextIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		said := failing(t, func(t testing.TB) {
			started := make(chan struct{})
			deaf := holdfast.NewTool("deaf", "Hears nothing.", func(context.Context, struct{}) (string, error) {
				close(started)
				<-release
				return "", nil
			})
			h := agenttest.New(t, agenttest.Config{Model: agenttest.Say(agenttest.Call("deaf", `{}`)),
				Tools: []holdfast.Tool{deaf}})
			go h.Run("go")
			<-started
			h.Restart()
		})
		close(release)
		if !strings.Contains(said, "left behind") && !strings.Contains(said, "ignores its context") {
			t.Errorf("said %q", said)
		}
	})
}
