package loop

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The question that a person is asked before a call is made after others like it, and the
// meaning of the answers.

// NeverTwice reports whether the server does not start such a call again by itself.
func NeverTwice(e holdfast.Effect) bool {
	return e == holdfast.EffectOnce || e == holdfast.EffectQuery
}

// textAlready says what has happened, for a person.
func textAlready(happened []thread.Happened) string {
	var said []string
	for _, h := range happened {
		text := "with " + h.Arguments
		if h.Result == "" {
			text += " (what came of it is not known)"
		} else {
			text += ": " + strings.TrimSuffix(h.Result, ".")
		}
		said = append(said, text)
	}
	return "Note that before this conversation branched, it was called " + strings.Join(said, "; ") + ". That stands."
}

// repeatSchema is the schema of the answer to that question.
const repeatSchema = `{"type":"object","required":["approved"],"properties":{` +
	`"approved":{"type":"boolean","description":"Whether the call is made."},` +
	`"reason":{"type":"string","description":"The text for the agent if the call is not made."}}}`

// repeatQuestion asks whether a call is made after different ones of its tool.
func repeatQuestion(call *thread.Call, arguments []byte, happened []thread.Happened) *holdfast.Interrupt {
	metadata := map[string]any{"tool": call.Name, "toolCallId": call.ID, "happened": happened}
	if json.Valid(arguments) && len(arguments) <= 16<<10 {
		metadata["arguments"] = json.RawMessage(arguments)
	}
	return &holdfast.Interrupt{
		Reason:         holdfast.ReasonToolCall,
		Message:        fmt.Sprintf("May the agent call %s? %s", call.Name, textAlready(happened)),
		ResponseSchema: json.RawMessage(repeatSchema),
		Metadata:       thread.MustJSON(metadata),
	}
}

// approves reports whether a person's answer lets a call be made.
func approves(a *holdfast.Answer) bool {
	var said struct {
		Approved bool `json:"approved"`
		Allow    bool `json:"allow"`
	}
	return json.Unmarshal(a.Payload, &said) == nil && (said.Approved || said.Allow)
}

// staysOut reports whether a person's answer is that they will not log in.
func staysOut(a *holdfast.Answer) bool {
	var said struct {
		Continue *bool `json:"continue"`
	}
	return a != nil && a.Reason == thread.ReasonLogin && json.Unmarshal(a.Payload, &said) == nil &&
		said.Continue != nil && !*said.Continue
}

// refusal returns what the model reads of a call that a person did not approve.
func refusal(a *holdfast.Answer) string {
	var said struct {
		Reason string `json:"reason"`
	}
	const text = "The person did not allow this call"
	if json.Unmarshal(a.Payload, &said) != nil || said.Reason == "" {
		return text + "."
	}
	return text + ": " + said.Reason
}

// handed returns an answer as hooks and tools get it, with what was asked.
func handed(a *holdfast.Answer, question *agui.Interrupt) *holdfast.Answer {
	if a == nil || question == nil {
		return a
	}
	with := *a
	with.Asked = question.Metadata
	return &with
}
