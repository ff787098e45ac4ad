package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/hooks"
)

// resultTool stands in the Tool hooks for the tool of a call whose result is there already.
type resultTool struct {
	spec   holdfast.ToolSpec
	result holdfast.ToolResult
}

// Spec returns the tool's.
func (t resultTool) Spec() holdfast.ToolSpec { return t.spec }

// Call returns the result.
func (t resultTool) Call(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) {
	return t.result, nil
}

// textNotPassed is what the model reads of a result that the Tool hooks did not let pass.
const textNotPassed = "No result: what has come for this call cannot be shown."

// passed returns the result that has come for a call, as the Tool hooks let it pass, for a
// call that is closed before a run could take it. Their changes of the shared state are left
// out.
func passed(ctx context.Context, chain *hooks.Chain, tool holdfast.Tool, c holdfast.ToolCall) holdfast.ToolResult {
	left := func(holdfast.StateUpdate) {}
	result, err := chain.CallTool(holdfast.ContextWithCall(ctx, c, left), tool, c)
	if err != nil {
		return holdfast.ToolResult{Text: textNotPassed, Failed: true}
	}
	return result
}
