package hooks

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The model may see less than the history holds: a Model hook gets the messages and may pass
// fewer or other ones on. The history does not change by that. No matter what a hook leaves
// out, the model gets a well-formed history, because providers refuse a result without its
// call and a call without its result.

// repaired is the last step before the model but for told.
func repaired(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		if wellFormed(req.Messages) {
			return next(ctx, req)
		}
		fixed := *req
		fixed.Messages = repair(req.Messages)
		return next(ctx, &fixed)
	}
}

// wellFormed reports whether every result follows its call, and every call has one result
// before the next message of another kind.
func wellFormed(messages []holdfast.Message) bool {
	for i := 0; i < len(messages); {
		calls := messages[i].Calls
		end := i + 1 + len(calls)
		if messages[i].Role == holdfast.RoleTool || end > len(messages) {
			return false
		}
		results := messages[i+1 : end]
		for n := range calls {
			if !hasResult(calls[n].ID, results) {
				return false
			}
		}
		i = end
	}
	return true
}

// hasResult reports whether one of the messages is the result of the call. If there are
// as many results as calls, this means one for each.
func hasResult(call string, messages []holdfast.Message) bool {
	for i := range messages {
		if messages[i].Role == holdfast.RoleTool && messages[i].CallID == call {
			return true
		}
	}
	return false
}

// repair leaves out results without their call, and gives calls without a result one that
// says so.
func repair(messages []holdfast.Message) []holdfast.Message {
	var out []holdfast.Message
	var open []holdfast.ToolCall
	closeAll := func() {
		for _, c := range open {
			out = append(out, holdfast.Message{
				ID:     "closed_" + c.ID,
				Role:   holdfast.RoleTool,
				CallID: c.ID,
				Text:   thread.TextNotAnswered,
			})
		}
		open = nil
	}
	for i := range messages {
		m := messages[i]
		if m.Role != holdfast.RoleTool {
			closeAll()
			out, open = append(out, m), append(open, m.Calls...)
			continue
		}
		for n, c := range open {
			if c.ID == m.CallID {
				out = append(out, m)
				open = append(open[:n:n], open[n+1:]...)
				break
			}
		}
	}
	closeAll()
	return out
}
