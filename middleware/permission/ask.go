package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// oldReason is the reason of questions that were asked before they had AG-UI's.
const oldReason = "holdfast:permission"

// isOurs reports whether an answer is to a question of ours. Others ask with AG-UI's reason,
// too, but ours name a rule.
func isOurs(a *holdfast.Answer) bool {
	if a == nil {
		return false
	}
	var asked struct {
		Rule string `json:"rule"`
	}
	return a.Reason == oldReason || a.Reason == holdfast.ReasonToolCall && json.Unmarshal(a.Asked, &asked) == nil &&
		asked.Rule != ""
}

// maxShownArguments bounds the arguments that a question repeats, in bytes. The stream
// has them in full.
const maxShownArguments = 16 << 10

// question returns the question about a call.
func (v *verdict) question(call *holdfast.ToolCall) *holdfast.Interrupt {
	message := fmt.Sprintf("May the agent call %s?", call.Name)
	if v.rule.Reason != "" {
		message += " " + v.rule.Reason
	}
	metadata := map[string]any{"tool": call.Name, "toolCallId": call.ID, "rule": v.rule.name}
	switch {
	case len(call.Arguments) > maxShownArguments:
		metadata["argumentsBytes"] = len(call.Arguments)
	case json.Valid(call.Arguments):
		metadata["arguments"] = call.Arguments
	default:
		metadata["arguments"] = string(call.Arguments)
	}
	return &holdfast.Interrupt{
		Reason: holdfast.ReasonToolCall, Message: message, ResponseSchema: v.schema(), Metadata: plainJSON(metadata),
	}
}

// schema returns the schema of the answer.
func (v *verdict) schema() json.RawMessage {
	type object = map[string]any
	members := object{
		"approved": object{"type": "boolean", "description": "Whether the call is made."},
		"reason":   object{"type": "string", "description": "The text for the agent if the call is not approved."},
		"editedArgs": object{
			"type":        "object",
			"description": "Arguments to make the call with instead of its own: all of them.",
		},
	}
	if len(v.rule.Remember) > 0 {
		members["remember"] = object{
			"type":        "string",
			"enum":        v.rule.Remember,
			"description": "For how long the answer also holds for such calls.",
		}
	}
	return plainJSON(object{"type": "object", "required": []string{"approved"}, "properties": members})
}

// answer is what a person has said.
type answer struct {
	allow    bool
	remember Scope // empty if not at all
	reason   string
}

// readAnswer reads an answer. Anything that does not match the schema exactly is a no,
// and is not remembered.
func (r *compiledRule) readAnswer(payload json.RawMessage) answer {
	v, err := readJSON(payload)
	members, isObject := v.(map[string]any)
	if err != nil || !isObject {
		return answer{}
	}
	var a answer
	for name, value := range members {
		ok := false
		switch name {
		case "approved", "allow": // the second is what older questions asked for
			a.allow, ok = value.(bool)
		case "editedArgs": // the call has them already
			ok = true
		case "reason":
			a.reason, ok = value.(string)
		case "remember":
			var scope string
			scope, ok = value.(string)
			a.remember = Scope(scope)
			ok = ok && slices.Contains(r.Remember, a.remember)
		}
		if !ok {
			return answer{}
		}
	}
	_, approved := members["approved"]
	if _, allow := members["allow"]; approved == allow {
		return answer{}
	}
	return a
}

// take applies a person's answer. A call that the rules deny stays denied, even if they became
// stricter after the person was asked; and a no stays a no, even if they now allow the call.
func (p *permissions) take(ctx context.Context, call *holdfast.ToolCall, v *verdict) error {
	if v.then == Deny {
		return nil
	}
	a := v.rule.readAnswer(call.Answer.Payload)
	if a.remember != "" && v.then == Ask {
		if err := p.remember(ctx, call, v, a.remember, a.allow); err != nil {
			return err
		}
	}
	if a.allow {
		v.then = Allow
		return approve(ctx, call)
	}
	v.then, v.by, v.text = Deny, byPerson, "The person did not allow this call."
	if a.reason != "" {
		v.text = "The person did not allow this call: " + a.reason
	}
	return nil
}
