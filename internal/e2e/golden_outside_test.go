package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// goldenOutside is a thread in a golden store with a call that was finished from outside. Those
// that wait are in golden_tools_test.go.
type goldenOutside struct {
	Call     string
	Approved map[string]any // the answer to its result
}

// finish sends the call's result.
func (g *goldenOutside) finish(t *testing.T, p *process) (int, map[string]any) {
	t.Helper()
	return sendResult(t, p.url+"/threads/approved/calls/"+g.Call+"/result",
		`{"result":{"approved":true,"reason":"it is golden"}}`)
}

// handOut makes that thread.
func (g *goldenOutside) handOut(t *testing.T, p *process) {
	t.Helper()
	end := chats(t, p, "approved", "r1",
		userMessage("u1", `use request_approval {"amount": 120, "subject": "a chair"}`), nil, nil)
	metadata, _ := end.Data["metadata"].(map[string]any)
	ours, _ := metadata["holdfast"].(map[string]any)
	calls, _ := ours["outsideCalls"].([]any)
	if len(calls) != 1 {
		t.Fatalf("the call was not handed out: %s", end.Raw)
	}
	g.Call, _ = calls[0].(map[string]any)["toolCallId"].(string)
	code, answer := g.finish(t, p)
	if code != http.StatusOK {
		t.Fatalf("the result: %d %v", code, answer)
	}
	g.Approved = answer
	var body struct {
		Messages []struct{ Role, Content string }
	}
	wait.For(t, func() error {
		getJSON(t, p.url+"/threads/approved/messages", &body)
		if n := len(body.Messages); n == 4 && strings.Contains(body.Messages[2].Content, "it is golden") {
			return nil
		}
		return fmt.Errorf("the thread does not go on: %+v", body.Messages)
	})
}

// checkOutside: the same result gets the first answer again.
func (g *goldenOutside) checkOutside(t *testing.T, p *process) {
	t.Helper()
	if code, again := g.finish(t, p); code != http.StatusOK || mustText(t, again) != mustText(t, g.Approved) {
		t.Errorf("the same result again: %d %v, first %v", code, again, g.Approved)
	}
}
