package loop

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// A thread that goes back with reuseResults keeps the results of the calls that came
// after that point. A call of the same tool with the same arguments then gets one of
// them, the oldest first, instead of running. Each is used once. With onlyRecorded no
// other call runs. Their stored form is in package thread; upkeep records them.

// reused returns the recorded result for a call, and whether there is one.
func (b *batch) reused(call thread.Call) (finished, bool) {
	if len(b.r.recorded) == 0 || call.Cut || call.Answer != nil && call.Answer.Declined {
		return finished{}, false
	}
	hash := thread.CallHash(call.Name, b.r.hist.Arguments(call.ID))
	for len(b.r.recorded[hash]) > 0 {
		v := b.r.recorded[hash][0]
		b.r.recorded[hash] = b.r.recorded[hash][1:]
		f, err := again(call, v)
		switch tool, ours := b.r.tools.Find(call.Name); {
		case err == nil:
			return f, true
		case ours && NeverTwice(tool.Spec().Effect):
			b.r.log.Warn("a recorded result cannot be read; the call is not made again",
				"thread", b.r.key.Thread, "call", call.ID, "tool", call.Name, "error", err)
			return finished{
				call:   call,
				reused: v.ID,
				notRun: true,
				result: holdfast.ToolResult{Text: textUnreadable, Failed: true},
			}, true
		}
		b.r.log.Warn("a recorded result cannot be read; the tool runs",
			"thread", b.r.key.Thread, "call", call.ID, "tool", call.Name, "error", err)
	}
	return finished{}, false
}

// textUnreadable is what the model reads of a call that must not be made twice.
const textUnreadable = "No result: this call was made before, and what came of it cannot be " +
	"read. It was not made again."

// notRecorded refuses a call that would have to run, and ends the run with its iteration.
func (b *batch) notRecorded(call thread.Call) finished {
	err := holdfast.Errorf(codes.NotRecorded,
		"The model calls %s in a way that was not recorded, so the tool was not run.", call.Name).
		WithHint("Go back once more without onlyRecorded, or send a new message: from then on tools run.")
	if b.r.st.Ending == nil {
		b.r.st.Ending = thread.EndingOf(err)
	}
	return finished{call: call, notRun: true, result: holdfast.ToolResult{Text: err.Message, Failed: true}}
}
