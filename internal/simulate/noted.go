package simulate

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

// Tools that change the documents of a thread: one adds a member to its shared state, and one shows an
// activity that changes, within a step.

// stateSchema is that of the shared state: each change adds a member that is true.
var stateSchema = json.RawMessage(`{"type":"object","additionalProperties":{"const":true}}`)

// doneText ends the result of a tool that has done its work.
const doneText = " is done"

// documented has a tool change a document before its work, and returns what does so after it.
func documented(ctx context.Context, call *holdfast.ToolCall) (end func() error, err error) {
	switch {
	case call.Thread == "": // it is made by hand
	case call.Name == "note":
		return func() error { return nil },
			holdfast.UpdateState(ctx, func(state json.RawMessage) (json.RawMessage, error) {
				members, err := membersOf(state)
				if err != nil {
					return nil, err
				}
				members[call.ID] = true
				return json.Marshal(members)
			})
	case call.Name == "show":
		bar, err := activity.Show(ctx, activity.TypeProgress, activity.Progress{Title: call.ID, Total: 2})
		if err != nil {
			return nil, err
		}
		finish, err := activity.Step(ctx, "the work of "+call.ID)
		if err != nil {
			return nil, err
		}
		return func() error {
			half := bar.Set(ctx, activity.Progress{Title: call.ID, Done: 1, Total: 2})
			finish()
			return errors.Join(half, bar.Set(ctx, activity.Progress{Title: call.ID, Done: 2, Total: 2}))
		}, nil
	}
	return func() error { return nil }, nil
}

// membersOf reads a shared state; a thread without one has no members.
func membersOf(state json.RawMessage) (map[string]any, error) {
	members := map[string]any{}
	if len(state) == 0 || string(state) == "null" {
		return members, nil
	}
	return members, json.Unmarshal(state, &members)
}
