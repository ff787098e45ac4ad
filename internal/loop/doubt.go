package loop

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// A call is in doubt when its intent is stored, its result is not, and its process is
// gone: nothing here shows whether it took effect. The takeover leaves it open, and the
// run that continues decides by the tool's declared effect: run it again, ask the tool,
// ask a person, or tell the model that the outcome is unknown. It is also in doubt when its
// tool, in a living process, cannot tell what became of it.

// The outcomes that a person can choose from.
const (
	answerHappened = "happened"
	answerNot      = "did_not_happen"
	answerRunAgain = "run_again"
)

// The texts for the model and the person. TextHappened and TextDidNot are results after a
// person's answer.
const (
	TextHappened = "A person has confirmed that this call took effect before the server died. " +
		"Its result is not known."
	TextDidNot = "A person has confirmed that this call did not take effect: the server died first."
	textAgain  = "Not started: this call was carried out before the conversation went back to here, and its " +
		"effect stands. Check before you repeat it."
	againQuestion = "%s was called before the conversation went back to here. Its effect may stand, and it was not " +
		"started again. Did it happen?"
	reasonInDoubt   = "holdfast:in_doubt"
	inDoubtQuestion = "The server died while it was calling %s. The call may have taken effect, and it was not " +
		"started again. Did it happen?"
	unknownQuestion = "%s was called, and it is not known what became of it: no answer came back. The call may have " +
		"taken effect, and it was not started again. Did it happen?"
)

// inDoubtSchema is the schema of a person's answer.
const inDoubtSchema = `{"type":"object","required":["outcome"],"properties":{` +
	`"outcome":{"type":"string","enum":["happened","did_not_happen","run_again"],"description":"run_again ` +
	`starts the call once more"},` +
	`"result":{"type":"string","description":"what the call came to, if it happened"}}}`

// inDoubt returns what happens to a call in doubt by its tool's policy: a question, or a
// result that says that the outcome is unknown.
func inDoubt(call thread.Call, spec holdfast.ToolSpec) finished {
	text, question := call.TextUnsure(), inDoubtQuestion
	switch {
	case call.Unknown:
		question = unknownQuestion
	case call.Again:
		text, question = textAgain, againQuestion
	}
	if spec.InDoubt != holdfast.DoubtAsk {
		return finished{call: call, code: thread.CodeUnknown, result: holdfast.ToolResult{Text: text, Failed: true}}
	}
	call.InDoubt = true
	return finished{call: call, err: &holdfast.Interrupt{
		Reason:         reasonInDoubt,
		Message:        fmt.Sprintf(question, call.Name),
		ResponseSchema: json.RawMessage(inDoubtSchema),
		Metadata:       thread.MustJSON(map[string]any{"tool": call.Name, "toolCallId": call.ID}),
	}}
}

// verdict is a person's answer to that question.
type verdict struct {
	Outcome string `json:"outcome"`
	Result  string `json:"result"`
}

// verdictOf reads a person's answer; the zero verdict if it cannot be read.
func verdictOf(a *holdfast.Answer) (v verdict) {
	if a == nil || json.Unmarshal(a.Payload, &v) != nil {
		return verdict{}
	}
	return v
}

// givenByPerson returns what a person said about the call as its result.
func givenByPerson(call thread.Call) finished {
	f := finished{call: call}
	switch said := verdictOf(call.Answer); said.Outcome {
	case answerHappened:
		f.result.Text, f.said = said.Result, true
		if said.Result == "" {
			f.result.Text = TextHappened
		}
	case answerNot:
		f.result, f.code = holdfast.ToolResult{Text: TextDidNot, Failed: true}, thread.CodeNotDone
		f.notRun = true
	default:
		f.result, f.code = holdfast.ToolResult{Text: call.TextUnsure(), Failed: true}, thread.CodeUnknown
	}
	return f
}

// RunsAgain reports whether a person has answered that a call in doubt is to run once more.
func RunsAgain(a *holdfast.Answer) bool { return verdictOf(a).Outcome == answerRunAgain }
