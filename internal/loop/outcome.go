package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// finished is what came of one call.
type finished struct {
	call    thread.Call
	result  holdfast.ToolResult
	err     error
	updates []holdfast.StateUpdate
	// notRun means that nothing was started for this result.
	notRun bool
	// code is the code of a failed result; empty if it has none.
	code string
	// said means that a person has said what came of the call.
	said bool
	// reused is the id of the recorded result that this one is; empty for any other.
	reused string
}

// again returns what a recorded result is for another call.
func again(call thread.Call, v store.Value) (finished, error) {
	var recorded thread.RecordedResult
	if err := thread.Decode(v.Data, &recorded); err != nil {
		return finished{}, err
	}
	m, err := (&agui.Message{ID: "m", Role: string(holdfast.RoleTool), ToolCallID: call.ID,
		Content: recorded.Content}).Domain()
	if err != nil {
		return finished{}, err
	}
	f := finished{
		call:   call,
		reused: v.ID,
		result: holdfast.ToolResult{Text: m.Text, Parts: m.Parts, Failed: recorded.Failed},
	}
	if len(recorded.Patch)+len(recorded.Whole) > 0 {
		f.updates = []holdfast.StateUpdate{recorded.Again}
	}
	return f, nil
}
