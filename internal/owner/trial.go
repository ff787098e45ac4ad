package owner

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/hooks"
	"github.com/holdfast-agents/holdfast/store"
)

// Process returns the name of the process, as threads have it while it runs them.
func Process(e *Engine) string { return e.process }

// ByHand is a call of a tool that no model makes.
type ByHand struct {
	// Agent is whose tool it is; empty for the default agent.
	Agent string
	// Call is the call. There is no thread, so it has no state.
	Call holdfast.ToolCall
	// Around are the only hooks around the call; those of the agent are not.
	Around []holdfast.Middleware
}

// CallByHand calls a tool that an agent has now, outside of any thread: nothing of the call is
// stored. If it was not started, the error is a [*holdfast.Error]; otherwise it is the tool's.
func CallByHand(ctx context.Context, e *Engine, by ByHand) (result holdfast.ToolResult, started bool, err error) {
	agents := e.Take() // until the call is over, however the agents are replaced
	defer agents.Drop()
	one, err := agents.Named(by.Agent)
	if err != nil {
		return result, false, err
	}
	tool, there := one.Toolboxes.Now().ByName[by.Call.Name]
	if !there {
		return result, false, holdfast.Errorf(codes.NotFound, "The agent %q has no tool %q.", one.Name, by.Call.Name).
			WithHint("GET /agents lists the tools of each agent.")
	}
	if err := e.checker.startableByHand(ctx, tool.Spec(), &by.Call); err != nil {
		return result, false, err
	}
	ctx = store.ContextWithLedger(ctx, e.cfg.Store)
	ctx = holdfast.ContextWithRun(ctx, &holdfast.RunContext{Iteration: func() holdfast.Iteration {
		return holdfast.Iteration{Agent: one.Name, Principal: by.Call.Principal}
	}})
	forgotten := func(holdfast.StateUpdate) {}
	bounded := &holdfast.Agent{Name: one.Name, Model: one.Model, Middleware: by.Around}
	result, err = hooks.New(bounded, e.cfg.Log, e.cfg.Observer.HookFailed).
		CallTool(holdfast.ContextWithCall(ctx, by.Call, forgotten), tool, by.Call)
	return result, true, err
}

// startableByHand returns why a tool cannot be called with these arguments.
func (c *checker) startableByHand(ctx context.Context, spec holdfast.ToolSpec, call *holdfast.ToolCall) error {
	if spec.Outside != nil {
		return holdfast.Errorf(codes.InvalidInput, "The calls of %s are finished from outside, which needs a thread.",
			spec.Name).
			WithHint("Let the agent call it: POST /runs.")
	}
	fits := decide.Check{Of: fmt.Sprintf("the tool %q", spec.Name), Schema: spec.Parameters, Value: call.Arguments}
	verdicts := decide.Verdicts{}
	if err := c.find(ctx, call.Principal, []decide.Check{fits}, verdicts); err != nil {
		return err
	}
	if violations, _ := verdicts.Of(fits); len(violations) > 0 {
		return holdfast.Errorf(codes.InvalidInput, "The arguments are not what %s takes: %s.", spec.Name,
			violations[0]).
			WithHint("GET /agents has the schema of its arguments. The tool was not started.").
			With("field", "arguments").
			With("violations", violations)
	}
	return nil
}
