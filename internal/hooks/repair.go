package hooks

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// repaired is the innermost step before the model.
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

// wellFormed reports whether every result follows its call, and every call has one
// result before the next message of another kind.
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

// hasResult reports whether one of the messages is the result of the call. As many
// results as calls are then one for each.
func hasResult(call string, messages []holdfast.Message) bool {
	for i := range messages {
		if messages[i].Role == holdfast.RoleTool && messages[i].CallID == call {
			return true
		}
	}
	return false
}

// repair leaves results without their call out, and gives calls without a result
// one that says so.
func repair(messages []holdfast.Message) []holdfast.Message {
	var out []holdfast.Message
	var open []holdfast.ToolCall
	closeAll := func() {
		for _, c := range open {
			out = append(out, holdfast.Message{ID: "closed_" + c.ID, Role: holdfast.RoleTool, CallID: c.ID, Text: thread.TextNotAnswered})
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
