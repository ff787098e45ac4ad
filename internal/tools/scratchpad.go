package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

type padArgs struct {
	Action string `json:"action" jsonschema:"read, write (in place of what is there) or append"`
	Text   string `json:"text,omitempty" jsonschema:"what to write or append"`
}

const (
	// padKey is the member of the shared state that has the scratchpad.
	padKey = "scratchpad"
	// maxPad bounds it, in bytes.
	maxPad = 32 << 10
)

// Scratchpad is the tool scratchpad: notes of the model that stay with the thread, in the
// shared state, where frontends see them as {"scratchpad": "…"}. A change is saved together
// with the call's result, so it happens once, whatever dies.
func Scratchpad() holdfast.Tool {
	return holdfast.NewTool(padKey, "Notes that stay with the conversation: read them, rewrite "+
		"them, or append to them.", func(ctx context.Context, args padArgs) (string, error) {
		switch args.Action {
		case "read":
			_, text, err := padOf(holdfast.CallFrom(ctx).State)
			if text == "" && err == nil {
				text = "The scratchpad is empty."
			}
			return text, err
		case "write", "append":
		default:
			return "", fmt.Errorf("action must be read, write or append, not %q", args.Action)
		}
		err := holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
			return withPad(state, args)
		})
		if err != nil {
			return "", fmt.Errorf("the scratchpad cannot be changed: %w", err)
		}
		return "Saved.", nil
	})
}

// padOf returns the members of a state and the scratchpad in it.
func padOf(state json.RawMessage) (members map[string]json.RawMessage, text string, err error) {
	if len(bytes.TrimSpace(state)) > 0 && json.Unmarshal(state, &members) != nil {
		return nil, "", errors.New("the shared state is not an object, so it has no place for a scratchpad")
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	if pad := members[padKey]; pad != nil && json.Unmarshal(pad, &text) != nil {
		return nil, "", errors.New("the shared state has something else as " + padKey)
	}
	return members, text, nil
}

// withPad changes the scratchpad and leaves the other members as they are.
func withPad(state json.RawMessage, args padArgs) (json.RawMessage, error) {
	members, text, err := padOf(state)
	if err != nil {
		return nil, err
	}
	if args.Action == "write" {
		text = ""
	}
	if text += args.Text; len(text) > maxPad {
		return nil, fmt.Errorf("the scratchpad would have %d bytes; it has room for %d", len(text), maxPad)
	}
	if members[padKey], err = json.Marshal(text); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}
