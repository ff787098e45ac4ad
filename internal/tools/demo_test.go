package tools_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/internal/tools"
)

// TestDemoModelKnowsTheTools: the tools accept every call that the demo model makes on
// its own.
func TestDemoModelKnowsTheTools(t *testing.T) {
	for _, user := range []string{"plan 12", "parallel 8", "wait 1", "time in Asia/Tokyo", "sum 2^10", "lookup lease",
		"charge 2", "ask me why"} {
		synctest.Test(t, func(t *testing.T) { converse(t, user) })
	}
}

// converse runs the model and the tools in turns, as the server does.
func converse(t *testing.T, user string) {
	t.Helper()
	byName := map[string]holdfast.Tool{}
	req := &holdfast.ModelRequest{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Text: user}}}
	for _, tool := range tools.Builtin(time.Now, 0, new(bytes.Buffer)) {
		byName[tool.Spec().Name] = tool
		req.Tools = append(req.Tools, tool.Spec())
	}
	for {
		calls := answer(t, req)
		req.Messages = append(req.Messages, holdfast.Message{Role: holdfast.RoleAssistant, Calls: calls})
		if len(calls) == 0 {
			break
		}
		for _, c := range calls {
			update := func(u holdfast.StateUpdate) {
				if _, err := u(nil); err != nil {
					t.Errorf("%s: the state: %v", user, err)
				}
			}
			result, err := byName[c.Name].Call(holdfast.ContextWithCall(t.Context(), c, update), c)
			var ask *holdfast.Interrupt
			if (err != nil && !errors.As(err, &ask)) || result.Failed {
				t.Errorf("%s: %s %s: %+v, %v", user, c.Name, c.Arguments, result, err)
			}
			req.Messages = append(req.Messages,
				holdfast.Message{Role: holdfast.RoleTool, CallID: c.ID, Text: result.Text})
		}
		req.Iteration++
	}
	if req.Iteration == 0 {
		t.Errorf("%s: no tool was called", user)
	}
}

func answer(t *testing.T, req *holdfast.ModelRequest) []holdfast.ToolCall {
	t.Helper()
	var calls []holdfast.ToolCall
	for d, err := range scripted.New(scripted.Options{}).Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Call == nil {
			continue
		}
		if d.Call.Index == len(calls) {
			calls = append(calls, holdfast.ToolCall{ID: strings.Repeat("c", len(req.Messages)) + d.Call.ID,
				Name: d.Call.Name})
		}
		c := &calls[d.Call.Index]
		c.Arguments = append(c.Arguments, json.RawMessage(d.Call.Arguments)...)
	}
	return calls
}
