package agenttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/server"
)

type purchase struct {
	Item string `json:"item"`
}

// A call that is finished from outside ends the run. The test plays the receiver of the call.
func ExampleHarness_Finish() {
	t := exampleTest() // in a test, use the test's own t
	defer t.end()

	handedOut := ""
	approve := contract.New[purchase]("approve", "Asks the finance department.", holdfast.Outside{
		Result: json.RawMessage(`{"type": "object", "required": ["approved"]}`),
		Deliver: func(_ context.Context, call holdfast.OutsideCall) error {
			handedOut = string(call.Call.Arguments)
			return nil
		},
	})
	h := agenttest.New(t, agenttest.Config{
		Model: agenttest.Say(agenttest.Call("approve", `{"item":"chair"}`), agenttest.Text("You may buy it.")),
		Tools: []holdfast.Tool{approve},
	})
	r := h.Run("May I buy a chair?")
	fmt.Println(r.Outcome, r.OutsideCalls[0].Tool, handedOut)
	r = h.Finish(r.OutsideCalls[0].ID, map[string]bool{"approved": true})
	fmt.Println(r.Outcome, r.Answer())
	// Output:
	// success approve {"item":"chair"}
	// success You may buy it.
}

// TestFinish: what is not taken, what does not go on yet, and an error.
func TestFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		approve := contract.New[purchase]("approve", "Asks.",
			holdfast.Outside{ExpiresAfter: time.Hour, Result: json.RawMessage(`{"type":"string"}`)})
		h := agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Call("approve", `{"item":"a"}`).And("approve", `{"item":"b"}`),
				agenttest.Text("done"), agenttest.Call("approve", `{"item":"c"}`), agenttest.Text("late")),
			Tools: []holdfast.Tool{approve},
		})
		r := h.Run("go")
		if len(r.OutsideCalls) != 2 || len(r.Started) != 2 {
			t.Fatalf("%+v", r)
		}
		a, b := r.OutsideCalls[0].ID, r.OutsideCalls[1].ID
		if r := h.Finish(a, 7); r.Outcome != agenttest.Refused || r.Code != codes.InvalidInput {
			t.Errorf("what does not fit: %+v", r)
		}
		if r := h.Finish(a, "yes"); r.Outcome != agenttest.Success || len(r.OutsideCalls) != 1 ||
			r.OutsideCalls[0].ID != b {
			t.Errorf("the first: %+v", r)
		}
		h.Restart()
		r = h.Finish(b, errors.New("the department is closed"))
		if results := r.Results(); r.Answer() != "done" || results[a] != "yes" ||
			results[b] != "the department is closed" || len(r.Started) != 0 {
			t.Errorf("the second: %s, %q, %+v", r.Answer(), r.Results(), r.Started)
		}
		r = h.Run("again")
		time.Sleep(time.Hour)
		if r := h.Finish(r.OutsideCalls[0].ID, "yes"); r.Code != codes.CallExpired {
			t.Errorf("the late one: %+v", r)
		}
		if r := h.Resume(); r.Answer() != "late" {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// changing is a toolset whose list changes.
type changing struct {
	list atomic.Pointer[agenttest.Toolset]
}

func (c *changing) Tools() []holdfast.Tool { return *c.list.Load() }

// TestToolsets: calls of a toolset's tools are recorded and die with the process, and a list
// that has changed is used by the next run.
func TestToolsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *agenttest.Harness
		set := &changing{}
		read := holdfast.NewTool("files_read", "Reads.", func(context.Context, struct{}) (string, error) {
			return "text", nil
		})
		pay := holdfast.NewTool("bank_pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
			h.Crash()
			return "", ctx.Err()
		}, holdfast.WithEffect(holdfast.EffectOnce))
		set.list.Store(&agenttest.Toolset{read})
		h = agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Call("files_read", `{}`), agenttest.Text("read"),
				agenttest.Call("bank_pay", `{}`), agenttest.Text("paid?")),
			Toolsets: []holdfast.Toolset{set},
		})
		if r := h.Run("read"); r.Answer() != "read" || len(r.Started) != 1 || r.Started[0].Name != "files_read" {
			t.Errorf("%+v", r)
		}
		set.list.Store(&agenttest.Toolset{read, pay})
		if r := h.Run("pay"); r.Outcome != agenttest.Cut || len(r.Started) != 1 || r.Started[0].Name != "bank_pay" {
			t.Errorf("%+v", r)
		}
		h.Restart()
		if r := h.Resume(); r.Answer() != "paid?" || len(r.Started) != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestADeadProcessHandsNothingOut: the functions of a tool's specification die with it.
func TestADeadProcessHandsNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *agenttest.Harness
		handedOut, asked := 0, 0
		approve := contract.New[purchase]("approve", "Asks.",
			holdfast.Outside{Deliver: func(ctx context.Context, _ holdfast.OutsideCall) error {
				if handedOut++; handedOut == 1 {
					h.Crash()
					return ctx.Err()
				}
				return nil
			}})
		pay := holdfast.NewTool("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, holdfast.WithQuery(func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, holdfast.Fate, error) {
			asked++
			return holdfast.ToolResult{Text: "paid"}, holdfast.FateDone, nil
		}))
		h = agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Call("approve", `{"item":"a"}`).And("pay", `{}`), agenttest.Text("done")),
			Tools: []holdfast.Tool{approve, pay},
		})
		if r := h.Run("go"); r.Outcome != agenttest.Cut {
			t.Fatalf("%+v", r)
		}
		h.Restart()
		r := h.Resume()
		if r.Outcome != agenttest.Success || len(r.OutsideCalls) != 1 || handedOut != 2 || asked != 1 {
			t.Fatalf("handed out %d times, asked %d times: %+v", handedOut, asked, r)
		}
		if r = h.Finish(r.OutsideCalls[0].ID, true); r.Answer() != "done" {
			t.Errorf("%+v", r)
		}
	})
}

// TestFrontendTools: a run that calls one ends with it, and goes on with its result, in the
// next process too. The harness has no method for this, so the server is asked as the caller.
func TestFrontendTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := agenttest.New(t, agenttest.Config{
			Model: agenttest.Say(agenttest.Call("confirm", `{}`), agenttest.Text("done"),
				agenttest.Text("again")),
			FrontendTools: []holdfast.ToolSpec{{Name: "confirm", Parameters: json.RawMessage(`{"type":"object"}`)}},
		})
		r := h.Run("Are you sure?")
		if r.Outcome != agenttest.Success || len(r.FrontendCalls) != 1 {
			t.Fatalf("got %+v", r)
		}
		h.Restart()
		r = h.Deliver(r.FrontendCalls[0], "yes")
		if r.Outcome != agenttest.Success || r.Answer() != "done" || len(r.FrontendCalls) != 0 ||
			r.Results()["call_1"] != "yes" {
			t.Errorf("got %+v", r)
		}
		h.As(holdfast.Principal{Tenant: "acme", User: "eve"})
		if res := h.Request("GET", "/threads/t", nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("somebody else is answered %s", res.Status)
		}
		h.As(server.LocalPrincipal())
		res := h.Request("POST", "/threads/t/fork", map[string]string{"threadId": "other"})
		h.Thread("other")
		r = h.Run("And now?")
		if res.StatusCode >= http.StatusMultipleChoices || r.Answer() != "again" || len(r.Messages) != 6 {
			t.Errorf("the fork is answered %s, and then %+v", res.Status, r)
		}
	})
}
