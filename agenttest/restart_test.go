package agenttest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/state"
)

type visits struct {
	N int `json:"n"`
}

type visitsNow struct {
	Count  int    `json:"count"`
	Secret string `json:"secret,omitempty"`
}

// The states of two deployments, and one of a third that is incompatible.
var (
	visitsV1 = state.Register(state.Spec[visits]{Name: "test.visits"})
	visitsV2 = state.Register(state.Spec[visitsNow]{
		Name:    "test.visits",
		Version: 2,
		Migrations: map[int]state.Migration{
			1: state.Migrate(func(old visits) (visitsNow, error) { return visitsNow{Count: old.N, Secret: "s"}, nil }),
		},
		Redact: func(v visitsNow) any { return map[string]int{"count": v.Count} },
	})
	visitsOther = state.Register(state.Spec[struct {
		N string `json:"n"`
	}]{Name: "test.visits"})
)

// counting counts the completed iterations.
func counting(key *state.Key[visits]) holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test.counting", States: []holdfast.State{key},
		AfterIteration: func(ctx context.Context, _ *holdfast.Iteration, _ *holdfast.IterationResult) {
			got, err := key.Update(ctx, func(v visits) visits { return visits{N: v.N + 1} })
			if err == nil {
				err = holdfast.Notify(ctx, "test.counted", got)
			}
			if err != nil {
				panic(err)
			}
		},
	}
}

func countingNow() holdfast.Middleware {
	return holdfast.Middleware{
		Name: "test.counting", States: []holdfast.State{visitsV2},
		BeforeIteration: func(ctx context.Context, _ *holdfast.Iteration) error {
			_, err := visitsV2.Update(ctx, func(v visitsNow) visitsNow { v.Count += 10; return v })
			return err
		},
	}
}

func TestStatesSurviveARestartAndAnotherDeployment(t *testing.T) {
	both(t, func(t *testing.T) {
		h := agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Text("1"), agenttest.Text("2"), agenttest.Text("3"),
				agenttest.Text("4")),
			Middleware: []holdfast.Middleware{counting(visitsV1)},
		})
		ended(t, h.Run("a"), agenttest.Success)
		h.Restart()
		ended(t, h.Run("b"), agenttest.Success)
		if got := agenttest.State(h, visitsV1); got.N != 2 {
			t.Errorf("after a restart %d iterations are counted, want 2", got.N)
		}
		if n := h.Notices(); len(n) != 2 || n[1].Name != "test.counted" || string(n[1].Value) != `{"n":2}` {
			t.Errorf("notices: %s", n)
		}

		h.Restart(countingNow())
		if got := agenttest.State(h, visitsV2); got.Count != 2 || got.Secret != "s" {
			t.Errorf("the stored state is migrated to %+v", got)
		}
		r := h.Run("c")
		ended(t, r, agenttest.Success)
		if got := agenttest.State(h, visitsV2); got.Count != 12 || got.Secret != "s" {
			t.Errorf("the new deployment has counted %+v", got)
		}
		if n := r.Notices(); len(n) != 1 || n[0].Name != "holdfast.schema_changed" {
			t.Errorf("notices: %s", n)
		}
		want := `{"schemaSignature":"test.visits","schemaVersion":1,"stateVersions":{"test.visits":2},` +
			`"states":{"test.visits":{"count":12}}}`
		if got := string(h.StateJSON()); got != want {
			t.Errorf("shown: %s", got)
		}

		h.Restart(counting(visitsV1))
		if r = h.Run("d"); r.Outcome != agenttest.Refused || r.Code != codes.StateTooNew {
			t.Errorf("the old deployment: %q %s", r.Outcome, r.Code)
		}
	})
}

// TestACrashWhileAToolRuns: the next process continues the run and the stream, and the
// call of the tool that must not run twice is in doubt.
func TestACrashWhileAToolRuns(t *testing.T) {
	both(t, func(t *testing.T) {
		var h *agenttest.Harness
		pay := holdfast.NewTool("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
			h.Crash()
			<-ctx.Done()
			return "", ctx.Err()
		}, holdfast.WithEffect(holdfast.EffectOnce))
		h = agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Call("pay", `{}`), agenttest.Text("I do not know whether it was paid.")),
			Tools: []holdfast.Tool{pay},
		})
		r := h.Run("pay")
		ended(t, r, agenttest.Cut)
		if len(r.Started) != 1 || slices.Contains(r.Types(), "TOOL_CALL_RESULT") {
			t.Errorf("before the crash: started %v, events %v", r.Started, r.Types())
		}
		if r := h.Run("hello?"); r.Outcome != agenttest.Refused || r.Code != codes.ShuttingDown {
			t.Errorf("a dead process answers %q %s", r.Outcome, r.Code)
		}
		h.Restart()
		r = h.Resume()
		ended(t, r, agenttest.Success)
		if r.Started != nil || r.RunID != "run1" || r.Types()[0] == "RUN_STARTED" {
			t.Errorf("after the crash: run %s, started %v, events %v", r.RunID, r.Started, r.Types())
		}
		if n := r.Notices(); len(n) != 1 || n[0].Name != "holdfast.takeover" {
			t.Errorf("notices: %s", n)
		}
		if log := strings.Join(h.Log(), "\n"); strings.Count(log, "run started") != 2 ||
			strings.Count(log, "run ended") != 1 || strings.Contains(log, "time=") {
			t.Errorf("the log:\n%s", log)
		}
		if again := h.Resume(); again.Outcome != agenttest.Success || again.Answer() != r.Answer() {
			t.Errorf("shown again: %+v", again)
		}
	})
}

// TestWhatADeadProcessDoesIsNotStored: the state change of a hook that crashes is lost,
// and the hook makes it again in the next process.
func TestWhatADeadProcessDoesIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *agenttest.Harness
		var crashed atomic.Bool
		dying := holdfast.Middleware{
			Name: "test.dying",
			AfterIteration: func(context.Context, *holdfast.Iteration, *holdfast.IterationResult) {
				if crashed.CompareAndSwap(false, true) {
					h.Crash()
				}
			},
		}
		h = agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Call("echo", `{"word":"a"}`), agenttest.Text("done")),
			Tools: []holdfast.Tool{
				echo(holdfast.EffectIdempotent),
			},
			Middleware: []holdfast.Middleware{counting(visitsV1), dying},
		})
		ended(t, h.Run("go"), agenttest.Cut)
		if got := agenttest.State(h, visitsV1); got.N != 0 {
			t.Errorf("the checkpoint has %+v", got)
		}
		h.Restart()
		r := h.Resume()
		ended(t, r, agenttest.Success)
		if got := agenttest.State(h, visitsV1); got.N != 2 || r.Started != nil {
			t.Errorf("%d iterations are counted, want 2; started %v", got.N, r.Started)
		}
	})
}

// TestTimePassesByTheClockOfTheBubble: a model that answers too late is called again,
// and the test takes no time.
func TestTimePassesByTheClockOfTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := agenttest.Turn{Text: "wait", Do: func(ctx context.Context, _ *holdfast.ModelRequest) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
		}}
		began := time.Now()
		h := agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(slow, agenttest.Text("here I am")), Server: server.Config{ModelTimeout: time.Minute},
		})
		r := h.Run("hello")
		ended(t, r, agenttest.Success)
		if took := time.Since(began); r.Answer() != "here I am" || took < time.Minute || took > 2*time.Minute {
			t.Errorf("%q after %v", r.Answer(), took)
		}
	})
}

// TestTheHarnessLeavesNothing: whatever a test was doing, no goroutine outlives it. In
// a bubble the runtime itself checks this.
func TestTheHarnessLeavesNothing(t *testing.T) {
	hang := holdfast.NewTool("hang", "Hangs.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	for _, how := range []string{"restarted", "crashed", "running", "waiting"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan struct{})
				t.Cleanup(func() { <-gone }) // after the harness has ended
				h := agenttest.New(t, agenttest.Config{
					Model: agenttest.Say(agenttest.Call("hang", `{}`), agenttest.Call("ask", `{"word":"well"}`),
						agenttest.Text("done")),
					Tools:  []holdfast.Tool{hang, asking()},
					Server: server.Config{ToolTimeout: time.Hour},
				})
				done := make(chan *agenttest.Result, 1)
				go func() {
					defer close(gone)
					done <- h.Run("go")
				}()
				synctest.Wait()
				switch how {
				case "restarted":
					h.Crash()
					<-done
					h.Restart()
				case "crashed":
					h.Crash()
					<-done
				case "waiting":
					if r := <-done; r.Outcome != agenttest.Interrupt {
						t.Errorf("%+v", r)
					}
				}
			})
		})
	}
}

func TestAWholeAgentOnAStoreOfItsOwn(t *testing.T) {
	agent := holdfast.Agent{
		Name:         "shop",
		Instructions: "Sell.",
		Tools:        []holdfast.Tool{echo("")},
		Middleware:   []holdfast.Middleware{counting(visitsV1)},
		Model:        agenttest.Say(agenttest.Text("never")),
	}
	model := agenttest.Say(agenttest.Call("echo", `{"word":"a"}`), agenttest.Text("sold"))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := agenttest.New(t, agenttest.Config{
		Agent: agent, Model: model, Tools: []holdfast.Tool{asking()}, Now: func() time.Time { return now },
		Principal: holdfast.Principal{Tenant: "acme", User: "bob"}, Server: server.Config{MaxIterations: 1},
	})
	r := h.Run("buy")
	ended(t, r, agenttest.Failed)
	if r.Code != codes.MaxIterations || agenttest.State(h, visitsV1).N != 1 {
		t.Errorf("%s, %+v", r.Code, agenttest.State(h, visitsV1))
	}
	if ended(t, h.Resume(), agenttest.Success); model.Left() != 0 {
		t.Error("the agent's own model was asked")
	}
	asked := model.Requests()[0]
	if len(asked.Tools) != 2 || fmt.Sprint(asked.Instructions) != "[Sell.]" {
		t.Errorf("the model was asked %+v", asked)
	}
	if at := r.Events[0].Map(); at["timestamp"] != nil && at["timestamp"] != float64(now.UnixMilli()) {
		t.Errorf("the clock is not the harness's: %s", r.Events[0].Raw)
	}
}
