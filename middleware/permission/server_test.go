package permission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware/permission"
)

// Tool permission on a server: parallel calls of which some are asked about, and restarts
// between a question and its answer.

// permissionServer is a server whose model makes the calls in the last message, one per
// line, and then says that it is done.
type permissionServer struct {
	*agenttest.Harness

	mu  sync.Mutex
	ran []string
}

type refundArgs struct {
	Amount int `json:"amount"`
}

func openPermissionServer(t *testing.T, o permission.Options) *permissionServer {
	t.Helper()
	p := &permissionServer{}
	refund := holdfast.NewTool("refund", "Refunds an amount.", p.refund, holdfast.WithEffect(holdfast.EffectOnce))
	look := holdfast.NewTool("look", "Looks.", func(context.Context, struct{}) (string, error) {
		return p.note("looked"), nil
	})
	p.Harness = hooktest.Serve(t, holdfast.Agent{
		Name: "shop", Model: hooktest.Scripted(permissionModel), Tools: []holdfast.Tool{refund, look},
		Middleware: []holdfast.Middleware{permission.New(o)},
	}, nil)
	return p
}

func (p *permissionServer) note(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran = append(p.ran, what)
	return what
}

// refund asks a question of its own above 100, and changes the shared state.
func (p *permissionServer) refund(ctx context.Context, a refundArgs) (string, error) {
	answer := holdfast.CallFrom(ctx).Answer
	if a.Amount > 100 && answer == nil {
		return "", &holdfast.Interrupt{Reason: "input_required", Message: "To which account?"}
	}
	to := ""
	if answer != nil {
		to = " to " + string(answer.Payload)
	}
	err := holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
		return json.Marshal(map[string]int{"refunded": a.Amount})
	})
	return p.note(fmt.Sprintf("refunded %d%s", a.Amount, to)), err
}

func permissionModel(req *holdfast.ModelRequest) []holdfast.Delta {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == holdfast.RoleTool {
		return []holdfast.Delta{{Text: "done", Finish: holdfast.FinishStop}}
	}
	var out []holdfast.Delta
	for i, line := range strings.Split(last.Text, "\n") {
		name, args, _ := strings.Cut(line, " ")
		out = append(out, holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Name: name, Arguments: args}})
	}
	return append(out, holdfast.Delta{Finish: holdfast.FinishToolCalls})
}

// shown is what a POST has shown.
type shown struct {
	results   []string // sorted
	questions []agenttest.Question
	notices   []string // the names of ours
}

// say sends a message.
func (p *permissionServer) say(t *testing.T, thread, text string) shown {
	t.Helper()
	p.Thread(thread)
	return showing(t, p.Run(text))
}

// answer answers questions: payloads by the id of the question.
func (p *permissionServer) answer(t *testing.T, thread string, answers map[string]string) shown {
	t.Helper()
	p.Thread(thread)
	payloads := map[string]any{}
	for id, payload := range answers {
		payloads[id] = json.RawMessage(payload)
	}
	return showing(t, p.Answers(payloads))
}

func showing(t *testing.T, r *agenttest.Result) shown {
	t.Helper()
	s := shown{results: slices.Sorted(slices.Values(hooktest.Results(r))), questions: r.Questions}
	if r.Outcome != agenttest.Success && r.Outcome != agenttest.Interrupt {
		t.Errorf("%s ends with %+v", r.RunID, r)
	}
	for _, n := range r.Notices() {
		if strings.HasPrefix(n.Name, "holdfast.permission") {
			s.notices = append(s.notices, n.Name)
		}
	}
	return s
}

var askAboutRefunds = permission.Options{Rules: []permission.Rule{
	{
		Tool:   "refund",
		Args:   map[string]permission.Condition{"amount": {Above: new(float64(1000))}},
		Then:   permission.Deny,
		Reason: "too much.",
	},
	{Tool: "refund", Then: permission.Ask, Remember: []permission.Scope{permission.ScopeThread, permission.ScopeUser}},
	{Tool: "*", Then: permission.Allow},
}}

// TestPermissionPartialApproval: of parallel calls, those that are allowed run at once
// and each of the others is asked about. One request answers all questions. A tool that
// asks something itself is not asked about again.
func TestPermissionPartialApproval(t *testing.T) {
	t.Parallel()
	p := openPermissionServer(t, askAboutRefunds)
	s := p.say(t, "t", "look {}\nrefund {\"amount\":50}\nrefund {\"amount\":60}\nrefund "+
		"{\"amount\":5000}\nrefund {\"amount\":200}")
	if !slices.Equal(s.results, []string{"Not allowed: too much.", "looked"}) || len(s.questions) != 3 ||
		!slices.Equal(s.notices, []string{"holdfast.permission_denied"}) {
		t.Fatalf("got %+v", s)
	}
	answers := map[string]string{}
	for _, q := range s.questions {
		if q.Reason != "tool_call" || q.Message != "May the agent call refund?" {
			t.Errorf("got %+v", q)
		}
		answers[q.ID] = fmt.Sprintf(`{"allow":%v,"reason":"not today"}`,
			!strings.Contains(string(q.Metadata), `"amount":60`))
	}
	s = p.answer(t, "t", answers)
	if !slices.Equal(s.results, []string{"The person did not allow this call: not today", "refunded 50"}) ||
		len(s.questions) != 1 || s.questions[0].Message != "To which account?" {
		t.Fatalf("got %+v", s)
	}
	if state := hooktest.Ask(t, p.Harness, http.MethodGet, "/threads/t/state", nil); !strings.Contains(state,
		`"refunded":50`) {
		t.Errorf("what the tool did to the shared state is lost: %s", state)
	}
	s = p.answer(t, "t", map[string]string{s.questions[0].ID: `"ann"`})
	if !slices.Equal(s.results, []string{`refunded 200 to "ann"`}) || len(s.questions) != 0 {
		t.Fatalf("got %+v", s)
	}
	if want := []string{"looked", "refunded 50", `refunded 200 to "ann"`}; !slices.Equal(p.ran, want) {
		t.Errorf("got %q, want %q", p.ran, want)
	}
	// Nothing was remembered.
	if s = p.say(t, "t", "refund {\"amount\":50}"); len(s.questions) != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestPermissionSurvivesARestart: a question can be answered at another process than the
// one that asked, and what is remembered holds for the thread, or for everything of the
// user.
func TestPermissionSurvivesARestart(t *testing.T) {
	t.Parallel()
	p := openPermissionServer(t, askAboutRefunds)
	for i, tt := range []struct{ remember, elsewhere string }{{"thread", ""}, {"user", "refunded 70"}} {
		thread := fmt.Sprintf("t%d", i)
		s := p.say(t, thread, "refund {\"amount\":50}")
		if len(s.questions) != 1 {
			t.Fatalf("got %+v", s)
		}
		p.Restart()
		s = p.answer(t, thread, map[string]string{s.questions[0].ID: fmt.Sprintf(`{"allow":true,"remember":%q}`,
			tt.remember)})
		if !slices.Equal(s.results, []string{"refunded 50"}) ||
			!slices.Equal(s.notices, []string{"holdfast.permission_remembered"}) {
			t.Fatalf("got %+v", s)
		}
		p.Restart()
		if s = p.say(t, thread, "refund {\"amount\":60}"); !slices.Equal(s.results, []string{"refunded 60"}) {
			t.Errorf("%s: the same thread: %+v", tt.remember, s)
		}
		s = p.say(t, thread+"other", "refund {\"amount\":70}")
		if got := strings.Join(s.results, ""); got != tt.elsewhere {
			t.Errorf("%s: another thread: %+v", tt.remember, s)
		}
	}
}

// TestPermissionEdited: a person changes the arguments of the calls that they approve. The
// rules decide about the new ones, so a rule that denies cannot be walked around.
func TestPermissionEdited(t *testing.T) {
	t.Parallel()
	p := openPermissionServer(t, askAboutRefunds)
	s := p.say(t, "t", "refund {\"amount\":50}\nrefund {\"amount\":60}\nrefund {\"amount\":70}")
	answers := map[string]string{}
	for _, q := range s.questions {
		for amount, payload := range map[string]string{
			"50": `{"approved":true,"editedArgs":{"amount":20}}`,
			"60": `{"approved":true,"editedArgs":{"amount":5000}}`,
			"70": `{"approved":false,"reason":"no","editedArgs":{"amount":1}}`,
		} {
			if strings.Contains(string(q.Metadata), `"amount":`+amount) {
				answers[q.ID] = payload
			}
		}
	}
	s = p.answer(t, "t", answers)
	if !slices.Equal(s.results, []string{"Not allowed: too much.", "The person did not allow this call: no",
		"refunded 20"}) {
		t.Errorf("got %+v", s)
	}
	if !slices.Equal(p.ran, []string{"refunded 20"}) {
		t.Errorf("ran %q", p.ran)
	}
	if history := hooktest.Ask(t, p.Harness, http.MethodGet, "/threads/t/messages", nil); !strings.Contains(history,
		`"arguments":"{\"amount\":20}"`) || strings.Contains(history, `"arguments":"{\"amount\":50}"`) {
		t.Errorf("the history has %s", history)
	}
}
