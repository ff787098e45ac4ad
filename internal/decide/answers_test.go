package decide

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// asked returns a thread that waits for leave to make a call, and an answer to it.
func asked(reason, schema, payload string) (Situation, Request) {
	s := Situation{
		Exists:     true,
		Thread:     "t",
		Status:     threads.StatusInterrupted,
		Run:        "run-1",
		Agent:      "a",
		Interrupts: []agui.Interrupt{{ID: "i1", Reason: reason, ToolCallID: "c1"}},
		Parameters: map[string]Parameters{
			"i1": {
				Tool: "send",
				Schema: json.RawMessage(`{"type":"object","required":["to","n"],"properties":{"to":{"type":"string"},` +
					`"n":{"type":"integer"}}}`),
			},
		},
	}
	if schema != "" {
		s.Interrupts[0].ResponseSchema = json.RawMessage(schema)
	}
	return s, Request{
		RunID:  "run-2",
		Hash:   "h",
		Resume: []agui.ResumeEntry{{InterruptID: "i1", Status: agui.ResumeResolved, Payload: json.RawMessage(payload)}},
	}
}

const (
	approval = `{"type":"object","required":["approved"],"properties":{` +
		`"approved":{"type":"boolean"},"reason":{"type":"string"},"editedArgs":{"type":"object"},` +
		`"remember":{"enum":["run","thread"]}}}`
	oldApproval = `{"type":"object","required":["allow"],"additionalProperties":false,` +
		`"properties":{"allow":{"type":"boolean"}}}`
)

// TestAnswersFit: an answer that its question's schema, or the tool of edited arguments, does
// not take is refused with everything that is wrong.
func TestAnswersFit(t *testing.T) {
	for _, c := range []struct {
		reason, schema, payload string
		wrong                   int
	}{
		{"tool_call", approval, `{"approved":true}`, 0},
		{"tool_call", approval, `{"approved":false,"reason":"no"}`, 0},
		{"tool_call", approval, `{"allow":true,"remember":"run"}`, 0},
		{"tool_call", approval, `{"approved":true,"allow":true}`, 1},
		{"tool_call", approval, `{"approved":"yes","remember":"ever","more":1}`, 3},
		{"tool_call", approval, `{"approved":true,"editedArgs":{"to":"x","n":1}}`, 0},
		{"tool_call", approval, `{"approved":true,"editedArgs":{"n":"1"}}`, 2},
		{"tool_call", approval, `{"approved":true,"editedArgs":"x"}`, 2},
		{"tool_call", approval, `{"approved":false,"editedArgs":{"n":"1"}}`, 0},
		{"tool_call", approval, `{"approved":true,"editedargs":{"to":"x","n":1}}`, 1},
		{"tool_call", `{"properties":{"approved":{}},"additionalProperties":true}`, `{"approved":true,"more":1}`, 0},
		{"tool_call", `{"properties":{"city":{}}}`, `{"city":"Rome","more":1}`, 0},
		{"tool_call", approval, `true`, 1},
		{"tool_call", approval, ``, 1},
		{"tool_call", approval, `null`, 1},
		{"holdfast:permission", oldApproval, `{"allow":true}`, 0},
		{"holdfast:permission", oldApproval, `{"approved":true}`, 2},
		{"mine", `{"enum":["A","B"]}`, `"A"`, 0},
		{"mine", `{"enum":["A","B"]}`, `"Z"`, 1},
		{"mine", "", `"Z"`, 0},
		{"mine", "", ``, 0},
		{"mine", `{"type":17}`, `"Z"`, 0},
	} {
		name := fmt.Sprintf("%s %s", c.reason, c.payload)
		s, req := asked(c.reason, c.schema, c.payload)
		d := decideAll(t, s, req)
		if c.wrong == 0 {
			if d.Do != Resume {
				t.Errorf("%s: %s %v", name, said(d), d.Err)
			}
			continue
		}
		if said(d) != codes.InvalidAnswer {
			t.Errorf("%s: %s", name, said(d))
			continue
		}
		if got, _ := d.Err.Details["violations"].([]Violation); len(got) != c.wrong || got[0].InterruptID != "i1" {
			t.Errorf("%s: %+v", name, got)
		}
		req.Resume[0].Status = agui.ResumeCancelled
		if d := decideAll(t, s, req); d.Do != Resume {
			t.Errorf("%s, cancelled: %s", name, said(d))
		}
	}
}

// TestEditedArguments: only the approval of a call can edit its arguments.
func TestEditedArguments(t *testing.T) {
	call := agui.Interrupt{Reason: holdfast.ReasonToolCall, ToolCallID: "c"}
	for payload, want := range map[string]string{
		`{"approved":true,"editedArgs":{"n":1}}`:  `{"n":1}`,
		`{"approved":true,"editedArgs":null}`:     "",
		`{"approved":true}`:                       "",
		`{"approved":false,"editedArgs":{"n":1}}`: "",
		`[]`: "",
	} {
		if got := EditedArguments(json.RawMessage(payload), &call); string(got) != want {
			t.Errorf("%s: %s", payload, got)
		}
		for _, other := range []agui.Interrupt{{Reason: "mine", ToolCallID: "c"}, {Reason: holdfast.ReasonToolCall}} {
			if got := EditedArguments(json.RawMessage(payload), &other); got != nil {
				t.Errorf("%s, %+v: %s", payload, other, got)
			}
		}
	}
}

// TestResumeRun: the id does not depend on the order of the answers, but on the thread and
// on which questions they answer.
func TestResumeRun(t *testing.T) {
	a, b := agui.ResumeEntry{InterruptID: "a"}, agui.ResumeEntry{InterruptID: "b"}
	one := ResumeRun("t", []agui.ResumeEntry{a, b})
	if one != ResumeRun("t", []agui.ResumeEntry{b, a}) {
		t.Error("the order counts")
	}
	for _, other := range []string{ResumeRun("u", []agui.ResumeEntry{a, b}), ResumeRun("t", []agui.ResumeEntry{a}),
		ResumeRun("t", nil)} {
		if other == one {
			t.Errorf("%s is the id of two runs", one)
		}
	}
}

// decideAll decides, and makes the checks that the decision depends on.
func decideAll(t *testing.T, s Situation, req Request) Decision {
	t.Helper()
	req.Verdicts = Verdicts{}
	d := Decide(s, req, testNow)
	if d.Do == Find {
		for _, c := range d.Checks {
			if err := req.Verdicts.Find(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		d = Decide(s, req, testNow)
	}
	return d
}

// TestSchemasThatTakeTooLong: an answer to a question with such a schema, or with arguments for
// such a tool, is refused with the name of the schema and the bound.
func TestSchemasThatTakeTooLong(t *testing.T) {
	slow := `{"items":{"pattern":"(([a-z]{10}){10}x?){9}$"}}`
	list := `["` + strings.Repeat("abc", 20_000) + `"]`
	for _, c := range []struct{ reason, question, tool, payload, want string }{
		{"mine", slow, "", list, `it cannot be checked against the schema of the question "i1": it takes more than ` +
			`allowed: a check of at most 500,000 steps`},
		{"tool_call", approval, slow, `{"approved":true,"editedArgs":{"x":` + list + `}}`, ""},
		{"tool_call", approval, `{"properties":{"x":` + slow + `}}`, `{"approved":true,"editedArgs":{"x":` + list +
			`}}`, `editedArgs: it cannot be checked against the schema of the tool "send": it takes more than ` +
			`allowed: a check of at most 500,000 steps`},
		{"tool_call", approval, `{"pattern":"` + strings.Repeat("[a-z]{1000}", 25) + `"}`,
			`{"approved":true,"editedArgs":{}}`,
			`editedArgs: it cannot be checked against the schema of the tool "send": it takes more than allowed: a ` +
				`pattern whose program has at most 20,000 instructions, repetitions counted`},
	} {
		s, req := asked(c.reason, c.question, c.payload)
		s.Parameters["i1"] = Parameters{Tool: "send", Schema: json.RawMessage(c.tool)}
		d := decideAll(t, s, req)
		if c.want == "" {
			if d.Do != Resume {
				t.Errorf("%s: %s %v", c.tool, said(d), d.Err)
			}
			continue
		}
		if said(d) != codes.InvalidAnswer || !strings.Contains(d.Err.Error(), c.want) {
			t.Errorf("%s: %s %v, want %s", c.question, said(d), d.Err, c.want)
		}
	}
}
