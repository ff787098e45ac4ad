package holdfast

import (
	"context"
	"iter"
)

// Middleware is a set of optional hooks around a run. Wrapping hooks take the
// next function and return one that may do something before it, after it or
// instead of it; the first middleware of a list is the outermost. Adding a
// hook to this struct never breaks an implementation.
type Middleware struct {
	// Name identifies the middleware in logs: "owner.name".
	Name string
	// Iteration runs before each iteration. An error ends the run with
	// RUN_ERROR (an [*Error] gives its code and text) and leaves the thread
	// stopped at this iteration: an empty-messages POST resumes it.
	Iteration func(ctx context.Context, it *Iteration) error
	// Model wraps the model call. It may skip the model by yielding deltas of
	// its own.
	Model func(next ModelCall) ModelCall
	// Batch sees all tool calls of an iteration before any of them starts. An
	// error ends the run as in Iteration, with nothing of the batch started.
	Batch func(ctx context.Context, it *Iteration, calls []ToolCall) error
	// Tool wraps one tool call.
	Tool func(next ToolHandler) ToolHandler
}

// ModelCall is one model call; see [Model].
type ModelCall func(ctx context.Context, req *ModelRequest) iter.Seq2[Delta, error]

// ToolHandler runs one tool call.
type ToolHandler func(ctx context.Context, tool Tool, call ToolCall) (ToolResult, error)

// Iteration is where a run stands.
type Iteration struct {
	Agent     string
	Principal Principal
	Thread    string
	Run       string
	// Number counts the iterations from 0. A run that was stopped and resumed
	// goes on counting.
	Number int
	// Granted counts the iterations since the run was started or resumed by a
	// request, from 0; limits compare with it.
	Granted int
}
