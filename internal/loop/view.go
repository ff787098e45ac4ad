package loop

import (
	"context"
	"iter"

	"github.com/holdfast-agents/holdfast"
)

// What the model sees may be less than the history holds: a middleware's Model hook
// gets the messages and may pass fewer or other ones on. The history is not touched
// by that. Whatever it leaves out, the model is shown well-formed history: providers
// refuse a result without its call, and a call without its result.

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
	open := map[string]bool{}
	for i := range messages {
		m := &messages[i]
		if m.Role == holdfast.RoleTool {
			if !open[m.CallID] {
				return false
			}
			delete(open, m.CallID)
			continue
		}
		if len(open) > 0 {
			return false
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
	}
	return len(open) == 0
}

// repair leaves results without their call out, and gives calls without a result
// one that says so.
func repair(messages []holdfast.Message) []holdfast.Message {
	var out []holdfast.Message
	var open []holdfast.ToolCall
	closeAll := func() {
		for _, c := range open {
			out = append(out, holdfast.Message{ID: "closed_" + c.ID, Role: holdfast.RoleTool, CallID: c.ID, Text: textNotAnswered})
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
