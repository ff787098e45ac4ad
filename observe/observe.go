// Package observe is how an engine says what happens, for logs and metrics of one's own.
//
// To observe something new, give [Observer] another function and call it where it
// happens; whoever wants to know sets it, and nobody else notices.
package observe

import (
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Observer is functions to call when something happens. Each may be nil. They are called
// from many goroutines, and must neither block nor keep what they are given. Nothing is
// reported for each token: the finest step is a commit.
//
// The iteration says where it happened: agent, principal, thread, run and number;
// Granted and Answer are not set.
type Observer struct {
	// RunStarted: this process runs the run from now on. One that was resumed or taken
	// over found kept finished results of the iteration it continues with; their tools
	// do not run again.
	RunStarted func(at holdfast.Iteration, resumed bool, kept int)
	// RunEnded: this process does not run it any more. The code is that of an error.
	// There is one RunEnded for each RunStarted.
	RunEnded func(at holdfast.Iteration, outcome holdfast.Outcome, code string, took time.Duration)
	// SchemaChanged: the run continues from a checkpoint that was written with other
	// middleware states than the agent has.
	SchemaChanged func(at holdfast.Iteration, change *holdfast.SchemaChange)
	// TakenOver: this process found a run whose owner is gone, and tried to take it
	// over. The code is the error with which a run that nobody continues has ended.
	TakenOver func(at holdfast.Iteration, result TakeoverResult, code string)
	// ModelCalled: one try of a model call is over. first is the time to the first
	// delta, negative if there was none; usage is nil if the model did not report it.
	ModelCalled func(at holdfast.Iteration, result ModelResult, first, took time.Duration, usage *holdfast.Usage)
	// ToolCalled: a tool call is over, or was not made by this server. The name is what
	// the model wrote: only with a result of a call that was started is it sure to be a
	// configured tool's.
	ToolCalled func(at holdfast.Iteration, tool string, result ToolResult, took time.Duration)
	// Notified: a middleware has said that something happened, by [holdfast.Notify].
	Notified func(at holdfast.Iteration, name string)
	// HookFailed: a hook of a middleware has panicked.
	HookFailed func(at holdfast.Iteration, middleware, hook string)
	// IterationDone: the answer is committed, and each of its calls has a result or is
	// the frontend's. results is how many results were saved before the checkpoint that
	// includes them.
	IterationDone func(at holdfast.Iteration, results int)
	// Committed: one try to commit is over, with err as the store's answer. The commit
	// must not be changed.
	Committed func(at holdfast.Iteration, c *holdfast.Commit, took time.Duration, err error)
	// LeaseRenewed: one try to renew the lease of this process is over.
	LeaseRenewed func(err error)
	// Cleaned: retention is done with a thread; most of the time nothing was due.
	Cleaned func(done holdfast.Cleaned)
	// Grown: a run has found its thread larger than the size to warn of, in bytes.
	Grown func(at holdfast.Iteration, bytes int64)
}

// OutcomeLeft is how a run ends in a process that loses it or stops: whoever finds it
// continues it. It is never stored.
const OutcomeLeft holdfast.Outcome = "left"

// Outcomes are all that RunEnded may say.
func Outcomes() []holdfast.Outcome {
	return []holdfast.Outcome{holdfast.OutcomeSuccess, holdfast.OutcomeInterrupt, holdfast.OutcomeCancelled, holdfast.OutcomeError, OutcomeLeft}
}

// TakeoverResult is what came of finding a run whose owner is gone.
type TakeoverResult string

// The results of a takeover.
const (
	TakeoverDone    TakeoverResult = "taken_over" // the run continues here
	TakeoverLost    TakeoverResult = "lost"       // another process was faster
	TakeoverCut     TakeoverResult = "cut"        // the run was ended, with an error
	TakeoverRefused TakeoverResult = "refused"    // no place is free here; it is tried again
	TakeoverFailed  TakeoverResult = "failed"     // the store did not answer; it is tried again
)

// TakeoverResults are all of them.
func TakeoverResults() []TakeoverResult {
	return []TakeoverResult{TakeoverDone, TakeoverLost, TakeoverCut, TakeoverRefused, TakeoverFailed}
}

// ModelResult is what came of one try of a model call.
type ModelResult string

// The results of a try.
const (
	ModelSuccess   ModelResult = "success"
	ModelTruncated ModelResult = "truncated" // the stream ended without its end
	ModelFailed    ModelResult = "error"
	ModelCancelled ModelResult = "cancelled" // the run was cancelled, lost or stopped
)

// ModelResults are all of them.
func ModelResults() []ModelResult {
	return []ModelResult{ModelSuccess, ModelTruncated, ModelFailed, ModelCancelled}
}

// ToolResult is what came of a tool call.
type ToolResult string

// The results of a call.
const (
	ToolSuccess   ToolResult = "success"
	ToolFailed    ToolResult = "error"
	ToolAsked     ToolResult = "interrupt" // a person is asked; the call starts again with the answer
	ToolCancelled ToolResult = "cancelled" // cut off with its run
	ToolRefused   ToolResult = "refused"   // not started: unknown, cut, declined or in doubt
	ToolReused    ToolResult = "reused"    // not started: it got a recorded result
	ToolFrontend  ToolResult = "frontend"  // the frontend makes the call
)

// ToolResults are all of them.
func ToolResults() []ToolResult {
	return []ToolResult{ToolSuccess, ToolFailed, ToolAsked, ToolCancelled, ToolRefused, ToolReused, ToolFrontend}
}
