package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// A thread that goes back with reuseResults keeps the results of the calls that came
// after that point. A call of the same tool with the same arguments then gets one of
// them, the oldest first, instead of running. Each is used once. Their stored form is in
// package thread; upkeep records them.

// reused returns the recorded result for a call, and whether there is one.
func (b *batch) reused(call thread.Call) (finished, bool) {
	if len(b.recorded) == 0 || call.Cut || call.Answer != nil && call.Answer.Declined {
		return finished{}, false
	}
	hash := thread.CallHash(call.Name, b.hist.Arguments(call.ID))
	for len(b.recorded[hash]) > 0 {
		v := b.recorded[hash][0]
		b.recorded[hash] = b.recorded[hash][1:]
		var recorded thread.RecordedResult
		if err := thread.Decode(v.Data, &recorded); err != nil {
			b.host.cfg.Log.Warn("a recorded result cannot be read; the tool runs", "thread", b.key.Thread, "tool", call.Name, "error", err)
			continue
		}
		m, err := (&agui.Message{ID: "m", Role: string(holdfast.RoleTool), ToolCallID: call.ID, Content: recorded.Content}).Domain()
		if err != nil {
			continue
		}
		f := finished{call: call, reused: v.ID, result: holdfast.ToolResult{Text: m.Text, Parts: m.Parts, Failed: recorded.Failed}}
		if len(recorded.Patch)+len(recorded.Whole) > 0 {
			f.updates = []holdfast.StateUpdate{recorded.Again}
		}
		return f, true
	}
	return finished{}, false
}
