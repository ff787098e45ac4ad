// Package permission decides which tool calls of an agent are run. Rules about the tool
// and its arguments allow a call, deny it, or have a person asked. A person can have an
// answer remembered for later calls.
//
// Every call is decided twice: in the Batch hook, before any call of the answer starts,
// and in the Tool hook, right before the call itself. The second decision is for calls
// that start again after a crash or with an answer.
package permission

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

// New makes a middleware that decides which tool calls are run. It panics if the options
// are invalid.
//
// Parallel calls are decided individually: those that are allowed run at once, the others
// wait for their answers. A remembered answer applies to later calls of the same tool by
// the same agent that the same rule asks about. One per agent is enough; several share
// what is remembered and ask once for a call.
//
// Notices: [NoticeDenied], [NoticeRemembered], [NoticeNotRemembered].
func New(o Options) holdfast.Middleware {
	p, err := o.compile()
	if err != nil {
		panic("permission.New: " + err.Error())
	}
	return holdfast.Middleware{
		Name:           "holdfast.tool_permission",
		States:         []holdfast.State{threadState, runState},
		Notices:        []string{NoticeDenied, NoticeRemembered, NoticeNotRemembered},
		Batch:          p.batch,
		Tool:           p.tool,
		AfterIteration: forgetApproved,
	}
}

// batch decides about the calls of an answer before any of them starts.
func (p *permissions) batch(ctx context.Context, b *holdfast.Batch) error {
	for i := range b.Calls {
		if result, _ := b.Decided(i); result != nil {
			continue
		}
		call := &b.Calls[i]
		v := p.byRules(call)
		if err := p.recall(ctx, call, &v); err != nil {
			return err
		}
		switch v.then {
		case Deny:
			v.tell(ctx, call)
			b.Deny(i, v.text)
		case Ask:
			b.Ask(i, v.question(call))
		}
	}
	return nil
}

// tool decides about a call right before it starts. The batch has decided about it
// before, but a call also comes here after a crash, or with an answer to a question of
// its tool.
func (p *permissions) tool(next holdfast.ToolHandler) holdfast.ToolHandler {
	return func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		if call.Finished {
			return next(ctx, tool, call)
		}
		answered := isOurs(call.Answer)
		v := p.byRules(&call)
		var err error
		if answered {
			err = p.take(ctx, &call, &v)
		} else {
			err = p.recall(ctx, &call, &v)
		}
		switch {
		case err != nil:
			return holdfast.ToolResult{}, &holdfast.EndRun{Err: holdfast.AsError(err)}
		case v.then == Deny:
			v.tell(ctx, &call)
			return holdfast.ToolResult{Text: v.text, Failed: true, NotRun: true}, nil
		case v.then == Ask:
			return holdfast.ToolResult{}, v.question(&call)
		}
		if answered {
			ctx, call = withoutAnswer(ctx, call)
		}
		return next(ctx, tool, call)
	}
}

// withoutAnswer hides the answer to our question from the tool, which would take it for
// its own.
func withoutAnswer(ctx context.Context, call holdfast.ToolCall) (context.Context, holdfast.ToolCall) {
	call.Answer = nil
	return holdfast.ContextWithCall(ctx, call, func(u holdfast.StateUpdate) {
		_ = holdfast.UpdateState(ctx, u) // fails only if there is no call
	}), call
}

// tell sends the notice of a denied call.
func (v *verdict) tell(ctx context.Context, call *holdfast.ToolCall) {
	notify(ctx, NoticeDenied, map[string]any{"tool": call.Name, "rule": v.rule.name, "by": v.by})
}
