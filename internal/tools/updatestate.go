package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
)

type stateArgs struct {
	Patch []stateOperation `json:"patch" jsonschema:"the operations, in order; if one fails nothing is changed"`
}

type stateOperation struct {
	Op    string          `json:"op" jsonschema:"add, remove, replace, move, copy or test"`
	Path  string          `json:"path" jsonschema:"a JSON Pointer like /recipe/steps/0; /recipe/steps/- is the end"`
	From  *string         `json:"from,omitempty" jsonschema:"of move and copy: the path that the value is taken from"`
	Value json.RawMessage `json:"value,omitempty" jsonschema:"of add, replace and test: the value, as JSON"`
}

// UpdateState is the tool update_state: the model changes the shared state with a JSON Patch. A change is
// saved together with the call's result, so it happens once, whatever dies.
func UpdateState() holdfast.Tool {
	return holdfast.NewTool("update_state",
		"Changes the document that you share with the application, with a JSON Patch (RFC 6902).",
		func(ctx context.Context, args stateArgs) (string, error) {
			patch, err := json.Marshal(args.Patch)
			if err != nil {
				return "", fmt.Errorf("the patch cannot be read: %w", err)
			}
			change := func(state json.RawMessage) (json.RawMessage, error) {
				if text := bytes.TrimSpace(state); len(text) == 0 || string(text) == "null" {
					state = json.RawMessage("{}") // as it is shown
				}
				return jsonpatch.Change(state, patch)
			}
			// The model is told at once, and about the state that it has seen.
			if _, err := change(holdfast.CallFrom(ctx).State); err != nil {
				return "", fmt.Errorf("nothing was changed: %w", err)
			}
			if err := holdfast.UpdateState(ctx, change); err != nil {
				return "", fmt.Errorf("nothing was changed: %w", err)
			}
			return "Changed.", nil
		})
}
