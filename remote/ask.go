package remote

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Questions of an agent. A run of its ends with all that it asks at once; a person here answers one
// after the other, and the agent is posted all answers together. The
// question's metadata has the answers so far, and the questions that are left.

// asking is the part of a question's metadata that says so.
type asking struct {
	ID    string             `json:"id"`
	Call  string             `json:"toolCallId,omitempty"`
	Left  []agui.Interrupt   `json:"left,omitempty"`
	Given []agui.ResumeEntry `json:"given,omitempty"`
}

// metadataKey is the member of the metadata with an asking.
const metadataKey = "holdfast.remote"

// question returns the first of the questions. given are the answers to those before.
func question(list []agui.Interrupt, given []agui.ResumeEntry) *holdfast.Interrupt {
	q := list[0]
	metadata := map[string]json.RawMessage{}
	if len(q.Metadata) > 0 && json.Unmarshal(q.Metadata, &metadata) != nil || metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	own, err := json.Marshal(asking{ID: q.ID, Call: q.ToolCallID, Left: list[1:], Given: given})
	if err == nil {
		metadata[metadataKey] = own
	}
	raw, err := json.Marshal(metadata)
	if err != nil {
		raw = nil
	}
	ask := &holdfast.Interrupt{
		Reason:         q.Reason,
		Message:        q.Message,
		ResponseSchema: q.ResponseSchema,
		Metadata:       raw,
		TellDeclined:   true,
	}
	if _, err := schema.Compile(q.ResponseSchema); len(q.ResponseSchema) > 0 && err != nil {
		ask.ResponseSchema = nil // no answer could be checked against it
	}
	if at, err := time.Parse(time.RFC3339, q.ExpiresAt); err == nil {
		ask.ExpiresAt = at
	}
	return ask
}

// answersOf returns what the agent is to be told of a person's answer, or what the person is asked
// next. Without an answer to a question of the agent it returns nothing.
func answersOf(a *holdfast.Answer) ([]agui.ResumeEntry, *holdfast.Interrupt) {
	var metadata map[string]json.RawMessage
	var was asking
	if a == nil || json.Unmarshal(a.Asked, &metadata) != nil || json.Unmarshal(metadata[metadataKey], &was) != nil ||
		was.ID == "" {
		return nil, nil
	}
	entry := agui.ResumeEntry{InterruptID: was.ID, Status: agui.ResumeResolved, Payload: a.Payload}
	if a.Declined {
		entry.Status = agui.ResumeCancelled
	}
	given := append(was.Given, entry)
	if len(was.Left) > 0 && !a.Declined {
		return nil, question(was.Left, given)
	}
	for _, left := range was.Left { // a person who declines one question is asked no other
		given = append(given, agui.ResumeEntry{InterruptID: left.ID, Status: agui.ResumeCancelled})
	}
	return given, nil
}
