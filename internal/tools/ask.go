package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

type askArgs struct {
	Question string   `json:"question" jsonschema:"what to ask"`
	Choices  []string `json:"choices,omitempty" jsonschema:"the answers to choose from, when there are only some"`
}

// AskPerson is the tool ask_person: it interrupts the run with a question and
// returns the person's answer.
func AskPerson() holdfast.Tool {
	return holdfast.NewTool("ask_person", "Asks the person a question and waits for the answer.",
		func(ctx context.Context, args askArgs) (holdfast.ToolResult, error) {
			if strings.TrimSpace(args.Question) == "" {
				return holdfast.ToolResult{}, fmt.Errorf("question must not be empty")
			}
			answer := holdfast.CallFrom(ctx).Answer
			if answer == nil {
				ask, err := question(args)
				if err != nil {
					return holdfast.ToolResult{}, err
				}
				return holdfast.ToolResult{}, ask
			}
			text := answerText(answer.Payload)
			if text == "" {
				return holdfast.ToolResult{Text: "The person gave no answer.", Failed: true}, nil
			}
			return holdfast.ToolResult{Text: text}, nil
		})
}

func question(args askArgs) (*holdfast.Interrupt, error) {
	answer := map[string]any{"type": "string", "description": args.Question}
	if len(args.Choices) > 0 {
		answer["enum"] = args.Choices
	}
	schema, err := json.Marshal(map[string]any{
		"type":       "object",
		"properties": map[string]any{"answer": answer},
		"required":   []string{"answer"},
	})
	if err != nil {
		return nil, fmt.Errorf("describe the answer: %w", err)
	}
	return &holdfast.Interrupt{Reason: "input_required", Message: args.Question, ResponseSchema: schema}, nil
}

// answerText reads {"answer": "…"} or a plain string; any other JSON is passed on
// unchanged. It returns "" if there is no answer.
func answerText(payload json.RawMessage) string {
	var form struct {
		Answer json.RawMessage `json:"answer"`
	}
	if json.Unmarshal(payload, &form) == nil && form.Answer != nil {
		payload = form.Answer
	}
	var text string
	if json.Unmarshal(payload, &text) == nil {
		return strings.TrimSpace(text) // null leaves it empty
	}
	var b bytes.Buffer
	if json.Compact(&b, payload) != nil {
		return ""
	}
	return b.String()
}
