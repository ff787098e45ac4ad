package http

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestTanStackIsAsked: the client of TanStack AI, and no other, is asked in its own words: at the end of the run that
// it has posted or joined, and after a reload.
func TestTanStackIsAsked(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"approved":{"type":"boolean"}}}`)
	ended := func() *agui.Reply {
		return reply([]agui.Frame{{ID: "9-x", Data: agui.Append(nil, agui.RunFinished{
			ThreadID: "t", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{
				{ID: "q", Reason: holdfast.ReasonToolCall, ToolCallID: "c", ResponseSchema: schema},
			}},
		})}})
	}
	f := &fake{
		info: &threads.Info{
			ID: "t", Run: "r", Status: threads.StatusInterrupted, PendingToolCalls: []string{"p"},
			Interrupts: []threads.Interrupt{{ID: "q", Reason: "tool_call", ToolCallID: "c", ResponseSchema: schema}},
		},
		messages: []string{`{"id":"a","role":"assistant","toolCalls":[` +
			`{"id":"c","type":"function","function":{"name":"pay","arguments":"{}"}},` +
			`{"id":"p","type":"function","function":{"name":"pick","arguments":"{}"}}]}`},
		post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
			return ended(), nil
		},
		events: func(store.Cursor, agui.Dialect) (*agui.Reply, error) { return ended(), nil },
	}
	s := serve(t, f, nil)
	const body = `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}]}`
	post := func(run string) string {
		_, got := do(t, "POST", s.URL+"/runs", body, "Content-Type", "application/json", "X-Run-Id", run)
		return got
	}
	_, joined := do(t, "GET", s.URL+"/runs?offset=-1&runId=r", "")
	for name, got := range map[string]string{"posted": post("r"), "joined": joined} {
		if !strings.Contains(got, `"reason":"approval_required"`) ||
			!strings.Contains(got, "tanstack:interruptBinding") ||
			!strings.Contains(got, `"name":"tool-input-available","value":{"toolCallId":"p","toolName":"pick"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, run := range []string{"", "another"} {
		if got := post(run); !strings.Contains(got, `"reason":"tool_call"`) || strings.Contains(got, "tanstack") {
			t.Errorf("X-Run-Id %q: %s", run, got)
		}
	}
	if _, got := do(t, "GET", s.URL+"/runs?threadId=t", ""); !strings.Contains(got, `"approval-requested"`) ||
		!strings.Contains(got, `"kind":"approval"`) || !strings.Contains(got, `"interruptedRunId":"r"`) {
		t.Errorf("hydrated: %s", got)
	}
}
