package loop

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// A run finds out about calls of which it is not known whether they took effect: doubt.go says
// what happens to those that stay in doubt.

// query asks the tool what happened to the call; false if the call must be started.
func (b *batch) query(ctx context.Context, call thread.Call, c holdfast.ToolCall) (finished, bool) {
	spec := b.r.tools.Spec(call.Name)
	if spec.Query == nil {
		return inDoubt(call, spec), true
	}
	// Credentials are those of the call's user; the key is the call's own, and not the question's.
	asking := c
	asking.Key = ""
	result, fate, err := spec.Query(holdfast.ContextWithCall(b.r.ctx, asking, nil), c)
	if cut := context.Cause(b.r.ctx); cut != nil {
		return finished{call: call, err: cut}, true
	}
	var ask *holdfast.Interrupt
	if errors.As(err, &ask) && ask.Reason == thread.ReasonLogin { // then it is asked again
		call.Unknown = true
		return finished{call: call, err: err}, true
	}
	if err != nil {
		b.r.log.Warn("a tool could not say what became of a call",
			"thread", b.r.key.Thread, "run", b.r.rec.ID, "tool", call.Name, "error", err)
		fate = holdfast.FateUnknown
	}
	switch fate {
	case holdfast.FateDone:
		c.Finished = true
		return b.through(ctx, resultTool{spec, result}, call, c), true
	case holdfast.FateNotDone:
		return finished{}, false
	}
	return inDoubt(call, spec), true
}

// unknown returns what happens to a call whose tool could not tell what became of it: f is
// what the tool returned. A tool that may run twice has simply failed.
func (b *batch) unknown(ctx context.Context, call thread.Call, c holdfast.ToolCall, f finished) finished {
	tool, ours := b.r.tools.Find(call.Name)
	if !ours {
		return f
	}
	b.r.log.Warn("a tool does not know what became of a call",
		"thread", b.r.key.Thread, "run", b.r.rec.ID, "tool", call.Name, "call", call.ID, "error", f.err)
	call.Unknown = true
	switch spec := tool.Spec(); spec.Effect {
	case holdfast.EffectOnce:
		return inDoubt(call, spec)
	case holdfast.EffectQuery:
		if known, ok := b.query(ctx, call, c); ok {
			return known
		}
		f.err, f.code, f.result = nil, thread.CodeNotDone, holdfast.ToolResult{Text: thread.TextNotDone, Failed: true}
	}
	return f
}

// gone returns what happens to a call whose tool is not there any more: one that was not
// started is refused; of others, what the tool had declared decides.
func (b *batch) gone(call thread.Call) finished {
	f := finished{
		call:   call,
		result: holdfast.ToolResult{Text: "There is no tool \"" + call.Name + "\".", Failed: true},
	}
	switch {
	case call.Outside != nil: // it may have been handed out
		f.result.Text = thread.TextGivenUp
		return f
	case !b.r.doubted[call.ID]: // one that has kept something was started, too
		f.notRun = true
		return f
	}
	intent, err := b.r.host.Read.Intent(b.r.ctx, b.r.key, call.ID)
	if err != nil {
		b.r.log.Warn("it cannot be read what was about to be done",
			"thread", b.r.key.Thread, "run", b.r.rec.ID, "call", call.ID, "error", err)
		intent = &thread.Intent{Effect: holdfast.EffectOnce}
	}
	switch intent.Effect {
	case holdfast.EffectPure:
		f.result.Text = "There is no tool \"" + call.Name + "\" any more; the call was not made again."
	case holdfast.EffectIdempotent:
		f.result.Text = "There is no tool \"" + call.Name +
			"\" any more. The call had been started and may have taken effect; it was not made again."
	default:
		return inDoubt(call, holdfast.ToolSpec{InDoubt: intent.InDoubt})
	}
	return f
}
