package loop

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// keyOf returns a call's idempotency key.
func (r *run) keyOf(call *thread.Call) string { return r.st.CallKey(r.key, r.rec.User, call) }

// startable reports whether there is a tool to start, and all of the call's arguments.
func (r *run) startable(call *thread.Call) bool {
	_, ours := r.tools.Find(call.Name)
	return (ours || call.Frontend) && !call.Cut
}

// hasEffects reports whether a call's tool is not declared pure. The intent of such a
// call is saved before it starts, and its result the moment it exists.
func (r *run) hasEffects(call thread.Call) bool {
	tool, ours := r.tools.Find(call.Name)
	return !ours || tool.Spec().Effect != holdfast.EffectPure
}

// startedBefore reports whether the call may have been started before, by an owner that died or
// until a person said that it is to run again. Nothing is stored about the start of a pure one, so
// one that was open when the run came here counts.
func (r *run) startedBefore(call *thread.Call) bool {
	if r.doubted[call.ID] || call.Kept != nil || call.Attempts > 1 {
		return true
	}
	_, open := r.inherited[call.ID]
	return open && call.Interrupt == nil && !r.hasEffects(*call)
}

// isFrontendTool reports whether the client declared a tool of that name.
func (r *run) isFrontendTool(name string) bool {
	for _, t := range r.rec.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// toolCall returns the call as the tool gets it.
func toolCall(r *run, call *thread.Call) holdfast.ToolCall {
	c := holdfast.ToolCall{
		ID:        call.ID,
		Name:      call.Name,
		Key:       r.keyOf(call),
		Principal: r.principal(),
		Thread:    r.key.Thread,
		Run:       r.rec.ID,
		Iteration: r.st.Iteration,
		State:     r.shared.now().State,
		Answer:    handed(call.Answer, call.Interrupt),
		Frontend:  call.Frontend,
		Kept:      call.Kept,
		Again:     r.startedBefore(call),
		Finished:  call.Finished() != nil,
	}
	// An answer to the server's own question is not the hooks' or the tool's.
	if call.Repeats || call.Answer != nil && call.Answer.Reason == thread.ReasonLogin {
		c.Answer = nil
	}
	c.Arguments = json.RawMessage(r.hist.Arguments(call.ID))
	return c
}

// toolOf returns the tool of a call. A frontend's tool is only a specification, and that of a
// call that is finished has only its result.
func toolOf(r *run, call *thread.Call) holdfast.Tool {
	tool, ours := r.tools.Find(call.Name)
	switch come := call.Finished(); {
	case come != nil:
		spec := holdfast.ToolSpec{Name: call.Name, Effect: holdfast.EffectOnce} // of a contract that is gone
		if ours {
			spec = tool.Spec()
		}
		return resultTool{spec, holdfast.ToolResult{Text: come.Text, Failed: come.Failed}}
	case ours && tool.Spec().Outside != nil:
		return &outsideTool{
			Tool: tool,
			call: *call,
			key:  r.key,
			keep: r.keeps.change,
			may:  func() error { return r.owner.mayStart(call.ID, true) },
			cfg:  &r.host.Config,
		}
	case ours:
		return tool
	}
	for _, t := range r.rec.Tools {
		if t.Name == call.Name {
			return frontendTool{holdfast.ToolSpec{
				Name:        t.Name,
				Description: t.Description,
				Parameters:  t.Parameters,
				Effect:      holdfast.EffectOnce,
				Metadata:    t.Metadata,
			}}
		}
	}
	return frontendTool{holdfast.ToolSpec{Name: call.Name, Effect: holdfast.EffectOnce}}
}
