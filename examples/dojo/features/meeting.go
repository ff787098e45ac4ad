package features

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

type meeting struct {
	Topic    string `json:"topic" jsonschema:"what it is about"`
	Attendee string `json:"attendee,omitempty" jsonschema:"with whom"`
}

// chosen is what the person answers.
type chosen struct {
	Label     string `json:"chosen_label"`
	Cancelled bool   `json:"cancelled"`
}

// slots are the times that the person may choose from.
var slots = []string{"Monday, 10:00", "Monday, 14:00", "Tuesday, 10:00", "Tuesday, 14:00"}

// interrupts has a tool that asks a person when it may go on. The run ends with the question, and
// waits for the answer without any process.
func interrupts() holdfast.Agent {
	return holdfast.Agent{
		Name:         "interrupt",
		Description:  "Books a meeting, and asks a person for the time.",
		Instructions: "You book meetings with schedule_meeting, which asks the user for the time.",
		Tools: []holdfast.Tool{
			// A calendar that takes the call's key books it once, however often it is told.
			holdfast.NewTool("schedule_meeting", "Books a meeting at the time that the user chooses.", schedule,
				holdfast.WithEffect(holdfast.EffectIdempotent)),
		},
	}
}

func schedule(ctx context.Context, m meeting) (string, error) {
	answer := holdfast.CallFrom(ctx).Answer
	if answer == nil {
		return "", askWhen(m)
	}
	var c chosen
	if len(answer.Payload) > 0 {
		if err := json.Unmarshal(answer.Payload, &c); err != nil {
			return "", fmt.Errorf("the user's answer cannot be read: %w", err)
		}
	}
	if c.Cancelled || c.Label == "" {
		return "The user has cancelled the meeting.", nil
	}
	return fmt.Sprintf("Booked: %s, %s.", m.Topic, c.Label), nil
}

// askWhen is the question, with its form and what a page shows beside it.
func askWhen(m meeting) error {
	form, err := json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			"chosen_label": map[string]any{"type": "string", "enum": slots},
			"cancelled":    map[string]any{"type": "boolean"},
		},
	})
	if err != nil {
		return err
	}
	about, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return &holdfast.Interrupt{
		Reason:         holdfast.ReasonInputRequired,
		Message:        "When shall the meeting be?",
		ResponseSchema: form,
		Metadata:       about,
	}
}
