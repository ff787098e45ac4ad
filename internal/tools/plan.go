package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

type plan struct {
	Title string     `json:"title" jsonschema:"what the plan is for"`
	Steps []planStep `json:"steps" jsonschema:"all steps, in order"`
}

type planStep struct {
	Title string `json:"title"`
	Done  bool   `json:"done"`
}

// UpdatePlan is the tool update_plan: it keeps the plan in the shared state, where
// frontends see it, as {"plan": {"title", "steps": [{"title", "done"}]}}.
func UpdatePlan() holdfast.Tool {
	return holdfast.NewTool("update_plan",
		"Shows the person the plan and which of its steps are done. Give all steps each time.",
		func(ctx context.Context, p plan) (string, error) {
			done := 0
			for _, s := range p.Steps {
				if s.Done {
					done++
				}
			}
			err := holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
				return withPlan(state, p)
			})
			if err != nil {
				return "", fmt.Errorf("the plan cannot be shown: %w", err)
			}
			return fmt.Sprintf("%d of %d steps are done.", done, len(p.Steps)), nil
		})
}

// withPlan sets the member plan and leaves the others as they are.
func withPlan(state json.RawMessage, p plan) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(state)) > 0 {
		if err := json.Unmarshal(state, &members); err != nil {
			return nil, errors.New("the shared state is not an object, so it has no place for a plan")
		}
	}
	if members == nil { // the state was null
		members = map[string]json.RawMessage{}
	}
	if p.Steps == nil {
		p.Steps = []planStep{}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	members["plan"] = b
	return json.Marshal(members)
}
