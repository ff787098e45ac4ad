package permission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware/permission"
)

// Rules, questions and answers, with the hooks called as the engine does.

// permissionRun is a run with the middleware and without a server.
type permissionRun struct {
	*hooktest.Run
	m       holdfast.Middleware
	t       *testing.T
	calls   int
	reached []holdfast.ToolCall // the tool
}

func newPermissionRun(t *testing.T, options string) *permissionRun {
	t.Helper()
	var o permission.Options
	if err := holdfast.DecodeOptions(json.RawMessage(options), &o); err != nil {
		t.Fatal(err)
	}
	return &permissionRun{Run: hooktest.New(t), m: permission.New(o), t: t}
}

// call turns "refund {...}" into a call with an id of its own.
func (p *permissionRun) call(text string) holdfast.ToolCall {
	name, args, _ := strings.Cut(text, " ")
	p.calls++
	id := fmt.Sprintf("c%d", p.calls)
	return holdfast.ToolCall{
		ID:        id,
		Name:      name,
		Arguments: json.RawMessage(args),
		Thread:    p.At.Thread,
		Run:       p.At.Run,
		Principal: p.At.Principal,
	}
}

// batch returns the decision about each call: run, ask, or the text of the result.
func (p *permissionRun) batch(calls ...holdfast.ToolCall) []string {
	p.t.Helper()
	b := holdfast.NewBatch(&p.At, calls)
	if err := p.m.Batch(p.Context(), b); err != nil {
		p.t.Fatal(err)
	}
	said := make([]string, len(calls))
	for i := range calls {
		switch result, ask := b.Decided(i); {
		case result != nil:
			if said[i] = result.Text; !result.Failed || !result.NotRun {
				p.t.Errorf("a denied call has the result %+v", result)
			}
		case ask != nil:
			said[i] = "ask"
		default:
			said[i] = "run"
		}
	}
	return said
}

// start takes a call through the Tool hook: it returns "ran", the text of the result, or
// the error.
func (p *permissionRun) start(call holdfast.ToolCall) string {
	p.t.Helper()
	next := func(_ context.Context, _ holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		p.reached = append(p.reached, call)
		return holdfast.ToolResult{Text: "ran"}, nil
	}
	result, err := p.m.Tool(next)(p.Context(), nil, call)
	if err != nil {
		return err.Error()
	}
	if result.Text != "ran" && (!result.Failed || !result.NotRun) {
		p.t.Errorf("a denied call has the result %+v", result)
	}
	return result.Text
}

func permissionAnswered(call holdfast.ToolCall, payload string) holdfast.ToolCall {
	call.Answer = &holdfast.Answer{
		InterruptID: "i",
		Reason:      holdfast.ReasonToolCall,
		Payload:     json.RawMessage(payload),
		Asked:       json.RawMessage(`{"rule":"x"}`),
	}
	return call
}

// question returns the question about a call.
func (p *permissionRun) question(call holdfast.ToolCall) *holdfast.Interrupt {
	p.t.Helper()
	b := holdfast.NewBatch(&p.At, []holdfast.ToolCall{call})
	if err := p.m.Batch(p.Context(), b); err != nil {
		p.t.Fatal(err)
	}
	_, ask := b.Decided(0)
	if ask == nil {
		p.t.Fatalf("%s: nobody is asked", call.Name)
	}
	return ask
}

const refundRules = `{"rules": [
	{"tool": "refund*", "args": {"amount": {"above": 1000}}, "then": "deny", "reason": "refunds above 1000 are made by hand."},
	{"tool": "refund*", "args": {"amount": {"below": 10}, "to.country": {"oneOf": ["DE", "FR"]}}, "then": "allow"},
	{"tool": "refund*", "then": "ask", "reason": "It costs money.", "remember": ["run", "thread", "user"]},
	{"tool": "read_*", "then": "allow"},
	{"tool": "drop_*", "then": "deny"},
	{"tool": "mail", "then": "ask", "exact": true, "remember": ["thread"]},
	{"tool": "once", "then": "ask", "remember": []}
]}`

// TestPermissionRules: the first rule that matches decides.
func TestPermissionRules(t *testing.T) {
	t.Parallel()
	const unclear = "Not allowed: the arguments have to be one JSON object that names each argument once, spelled as " +
		"in the tool's parameters."
	for call, want := range map[string]string{
		`refund {"amount":5000}`:                                  "Not allowed: refunds above 1000 are made by hand.",
		`refund_all {"amount":1000.5}`:                            "Not allowed: refunds above 1000 are made by hand.",
		`refund {"amount":5,"to":{"country":"DE"}}`:               "run",
		`refund {"amount":5,"to":{"country":"IT"}}`:               "ask",
		`refund {"amount":5}`:                                     "ask",
		`refund {"amount":"5000"}`:                                "ask",
		`refund `:                                                 "ask",
		`refund {"amount":5,"amount":5000}`:                       unclear,
		`refund {"AMOUNT":5000,"amount":5,"to":{"country":"DE"}}`: unclear,
		`refund {"amount":5,"to":{"Country":"DE"}}`:               unclear,
		`refund {"amount":`:                                       unclear,
		`read_file not JSON`:                                      "run",
		`drop_table {}`:                                           "Not allowed: this agent may not make this call.",
		`mail {"to":"a","to":"b"}`:                                unclear,
		`unheard_of {}`:                                           "ask",
		`once {}`:                                                 "ask",
	} {
		p := newPermissionRun(t, refundRules)
		if got := p.batch(p.call(call)); got[0] != want {
			t.Errorf("%s: got %q, want %q", call, got[0], want)
		}
		// A call that reaches the tool without a decision.
		got := strings.Replace(strings.Replace(p.start(p.call(call)), "ran", "run", 1), "a person is asked: ", "ask", 1)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s, undecided: got %q, want %q", call, got, want)
		}
		if denied := len(p.Notices) > 0 &&
			strings.HasPrefix(p.Notices[0], "holdfast.permission_denied"); denied == (want == "run" || want == "ask") {
			t.Errorf("%s: the notices are %q", call, p.Notices)
		}
	}
	allow := newPermissionRun(t, `{"default": "allow"}`)
	if got := allow.batch(allow.call("any {}")); got[0] != "run" {
		t.Errorf("with allow as the default: %q", got)
	}
}

func TestPermissionNotices(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	p.batch(p.call(`drop_x {}`))
	p.start(permissionAnswered(p.call(`refund {"amount":7}`), `{"allow":true,"remember":"thread"}`))
	p.start(permissionAnswered(p.call(`mail {"to":"x"}`), `{"allow":false}`))
	want := []string{
		`holdfast.permission_denied {"by":"rule","rule":"drop_*","tool":"drop_x"}`,
		`holdfast.permission_remembered {"allow":true,"rule":"refund*","scope":"thread","tool":"refund"}`,
		`holdfast.permission_denied {"by":"person","rule":"mail exact","tool":"mail"}`,
	}
	if !slices.Equal(p.Notices, want) {
		t.Errorf("got  %q\nwant %q", p.Notices, want)
	}
}

// TestPermissionQuestion: the question has everything that a person needs for an answer.
func TestPermissionQuestion(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	long := `"` + strings.Repeat("x", 20000) + `"`
	for _, tt := range []struct{ call, message, metadata, scopes string }{
		{`refund {"amount": 50}`, "May the agent call refund? It costs money.",
			`{"arguments":{"amount":50},"rule":"refund*","tool":"refund","toolCallId":"c1"}`,
			`["run","thread","user"]`},
		{`other broken`, "May the agent call other?",
			`{"arguments":"broken","rule":"default","tool":"other","toolCallId":"c2"}`, `["run","thread"]`},
		{`mail {"to":"x"}`, "May the agent call mail?",
			`{"arguments":{"to":"x"},"rule":"mail exact","tool":"mail","toolCallId":"c3"}`, `["thread"]`},
		{`once ` + long, "May the agent call once?",
			`{"argumentsBytes":20002,"rule":"once","tool":"once","toolCallId":"c4"}`, ""},
	} {
		q := p.question(p.call(tt.call))
		var schema struct {
			Type       string
			Required   []string
			Properties map[string]struct {
				Type string
				Enum json.RawMessage
			}
		}
		if err := json.Unmarshal(q.ResponseSchema, &schema); err != nil {
			t.Fatal(err)
		}
		if q.Reason != holdfast.ReasonToolCall || q.Message != tt.message || string(q.Metadata) != tt.metadata {
			t.Errorf("%.30s: got %s %q %s", tt.call, q.Reason, q.Message, q.Metadata)
		}
		// assistant-ui shows no buttons for a schema that has anything else.
		var keywords map[string]json.RawMessage
		if err := json.Unmarshal(q.ResponseSchema, &keywords); err != nil || len(keywords) != 3 {
			t.Errorf("%.30s: got the schema %s", tt.call, q.ResponseSchema)
		}
		if schema.Properties["approved"].Type != "boolean" || schema.Required[0] != "approved" ||
			schema.Properties["editedArgs"].Type != "object" ||
			string(schema.Properties["remember"].Enum) != tt.scopes {
			t.Errorf("%.30s: got the schema %s", tt.call, q.ResponseSchema)
		}
	}
}

// TestPermissionOthersAnswers: the answer to a question of the tool or of another middleware,
// which have the same reason, is none to ours; the answer to a question from before is.
func TestPermissionOthersAnswers(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	for name, c := range map[string]struct {
		reason, asked, want string
	}{
		"another's":      {holdfast.ReasonToolCall, `{"tool":"refund"}`, "May the agent call refund?"},
		"without a word": {holdfast.ReasonToolCall, "", "May the agent call refund?"},
		"from before":    {"holdfast:permission", "", "ran"},
	} {
		call := p.call(`refund {"amount":50}`)
		call.Answer = &holdfast.Answer{
			Reason:  c.reason,
			Asked:   json.RawMessage(c.asked),
			Payload: json.RawMessage(`{"allow":true}`),
		}
		if got := p.start(call); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestPermissionAnswers: what is not clearly a yes is a no, and is not remembered.
func TestPermissionAnswers(t *testing.T) {
	t.Parallel()
	const no = "The person did not allow this call."
	for payload, want := range map[string]string{
		`{"approved":true}`:                   "ran",
		`{"approved":true,"editedArgs":{}}`:   "ran",
		`{"approved":false,"reason":"later"}`: "The person did not allow this call: later",
		`{"approved":true,"allow":true}`:      no,
		`{"approved":"true"}`:                 no,
		`{"editedArgs":{}}`:                   no,
		`{"allow":true}`:                      "ran",
		`{"allow":true,"reason":"fine"}`:      "ran",
		`{"allow":true,"remember":"run"}`:     "ran",
		`{"allow":false}`:                     no,
		`{"allow":false,"reason":"too much"}`: "The person did not allow this call: too much",
		`{"allow":false,"remember":"user"}`:   no,
		`{"allow":"true"}`:                    no,
		`{"allow":1}`:                         no,
		`{"Allow":true}`:                      no,
		`{"allow":true,"allow":false}`:        no,
		`{"allow":true,"Allow":false}`:        no,
		`{"allow":true,"remember":"forever"}`: no,
		`{"allow":true,"remember":null}`:      no,
		`{"allow":true,"reason":7}`:           no,
		`{"allow":true,"always":true}`:        no,
		`{"remember":"thread"}`:               no,
		`true`:                                no,
		`"allow"`:                             no,
		`[{"allow":true}]`:                    no,
		`null`:                                no,
		``:                                    no,
		`{"allow":true`:                       no,
	} {
		p := newPermissionRun(t, refundRules)
		if got := p.start(permissionAnswered(p.call(`refund {}`), payload)); got != want {
			t.Errorf("%s: got %q, want %q", payload, got, want)
		}
		for _, call := range p.reached {
			if call.Answer != nil {
				t.Errorf("%s: the tool sees the answer as its own", payload)
			}
		}
		remembered := slices.ContainsFunc(p.Notices, func(n string) bool { return strings.Contains(n, "_remembered") })
		if wanted := payload == `{"allow":true,"remember":"run"}` ||
			payload == `{"allow":false,"remember":"user"}`; remembered != wanted {
			t.Errorf("%s: the notices are %q", payload, p.Notices)
		}
	}
}

// TestPermissionTheToolsOwnQuestion: until the iteration is over, a call that was allowed
// is not asked about again when its tool asks something itself.
func TestPermissionTheToolsOwnQuestion(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	call := p.call(`refund {"amount":50}`)
	if got := p.start(permissionAnswered(call, `{"allow":true}`)); got != "ran" {
		t.Fatal(got)
	}
	p.start(permissionAnswered(call, `{"allow":true}`)) // once more, after a crash
	call.Answer = &holdfast.Answer{Reason: "confirmation", Payload: json.RawMessage(`"yes"`)}
	if got := p.start(call); got != "ran" || p.reached[2].Answer != call.Answer {
		t.Errorf("with the tool's answer: %q, %+v", got, p.reached)
	}
	forked := call
	forked.Thread = "another"
	if got := p.start(forked); !strings.Contains(got, "a person is asked") {
		t.Errorf("in a fork: %q", got)
	}
	for range 2 { // once more, after a crash
		p.m.AfterIteration(p.Context(), &p.At, &holdfast.IterationResult{})
	}
	if got := p.start(call); !strings.Contains(got, "a person is asked") {
		t.Errorf("in another iteration: %q", got)
	}
}

// TestPermissionRulesThatChange: stricter rules override an answer to older ones, and a
// no stays a no.
func TestPermissionRulesThatChange(t *testing.T) {
	t.Parallel()
	denies, allows := newPermissionRun(t, `{"default":"deny"}`), newPermissionRun(t, `{"default":"allow"}`)
	for _, tt := range []struct {
		p            *permissionRun
		answer, want string
	}{
		{denies, `{"allow":true}`, "Not allowed: this agent may not make this call."},
		{allows, `{"allow":true,"remember":"thread"}`, "ran"},
		{allows, `{"allow":false}`, "The person did not allow this call."},
	} {
		if got := tt.p.start(permissionAnswered(tt.p.call("x {}"), tt.answer)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.answer, got, tt.want)
		}
	}
	if slices.ContainsFunc(allows.Notices, func(n string) bool { return strings.Contains(n, "_remembered") }) {
		t.Errorf("an answer is remembered for a rule that does not ask: %q", allows.Notices)
	}
}

// TestPermissionLeavesDecidedCallsAlone: what another middleware has decided stands.
func TestPermissionLeavesDecidedCallsAlone(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	b := holdfast.NewBatch(&p.At, []holdfast.ToolCall{p.call("drop_x {}")})
	b.Skip(0, holdfast.ToolResult{Text: "from a cache"})
	if err := p.m.Batch(p.Context(), b); err != nil {
		t.Fatal(err)
	}
	if result, _ := b.Decided(0); result.Text != "from a cache" || len(p.Notices) > 0 {
		t.Errorf("got %+v, %q", result, p.Notices)
	}
}

// TestPermissionOfFinishedCalls: a call that was finished from outside has happened; there is
// nothing to permit any more.
func TestPermissionOfFinishedCalls(t *testing.T) {
	t.Parallel()
	p := newPermissionRun(t, refundRules)
	call := p.call("drop_x {}")
	call.Finished = true
	if got := p.start(call); got != "ran" || len(p.reached) != 1 || len(p.Notices) > 0 {
		t.Errorf("got %q, %q", got, p.Notices)
	}
}

// TestPermissionMistakes: every mistake is found at start-up, and the text says what to
// write.
func TestPermissionMistakes(t *testing.T) {
	t.Parallel()
	infinite := math.Inf(1)
	hooktest.WantInvalid(t, "permission.New", permission.New, map[string]permission.Options{
		`default: "never" is not a decision: write allow, ask or deny`: {Default: "never"},
		`rule 1 (tool ""): it names no tool: write its name, or "*"`:   {Rules: []permission.Rule{{Then: "ask"}}},
		`rule 2 (tool "x"): "" is not a decision`: {
			Rules: []permission.Rule{{Tool: "y", Then: "deny"}, {Tool: "x"}},
		},
		"remember and exact are for rules that ask": {
			Rules: []permission.Rule{{Tool: "x", Then: "allow", Exact: true}},
		},
		`"week" is not a scope`: {
			Rules: []permission.Rule{{Tool: "x", Then: "ask", Remember: []permission.Scope{"run", "week"}}},
		},
		`or is listed twice`: {
			Rules: []permission.Rule{{Tool: "x", Then: "ask", Remember: []permission.Scope{"run", "run"}}},
		},
		`the argument "a..b" is not a path`: {
			Rules: []permission.Rule{
				{Tool: "x", Then: "ask", Args: map[string]permission.Condition{"a..b": {Glob: "*"}}},
			},
		},
		`the argument "a": the condition cannot be written`: {
			Rules: []permission.Rule{
				{Tool: "x", Then: "ask", Args: map[string]permission.Condition{"a": {Below: &infinite}}},
			},
		},
	})
}
