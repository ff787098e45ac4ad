package loop

import (
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Observer is told what happens, for logs and metrics. Its methods are called
// from many goroutines and must neither block nor keep what they are given.
// Nothing is reported for each token: the finest step is a commit.
type Observer interface {
	RunObserver
	StepObserver
	StoreObserver
}

// RunObserver is told of runs. A place has the agent, the principal, the thread,
// the run and the iteration; Granted is not set.
type RunObserver interface {
	// RunStarted: this process runs the run from now on. One that was resumed or
	// taken over found kept finished results of the iteration it goes on with;
	// their tools do not run again.
	RunStarted(at holdfast.Iteration, resumed bool, kept int)
	// RunEnded: this process does not run it any more. The outcome is one of
	// success, interrupt, cancelled, error (with a code) and [OutcomeLeft]. There
	// is one RunEnded for each RunStarted.
	RunEnded(at holdfast.Iteration, outcome, code string, took time.Duration)
	// SchemaChanged: the run goes on from a checkpoint that was written with other
	// middleware states than the agent has.
	SchemaChanged(at holdfast.Iteration, change *holdfast.SchemaChange)
	// Claimed: this process found a run whose owner is gone, and tried to take
	// it. The result is one of the Claim constants; the code is the error with
	// which a run that nobody goes on with has ended.
	Claimed(at holdfast.Iteration, result, code string)
}

// StepObserver is told of the steps of a run.
type StepObserver interface {
	// ModelCalled: one try of a model call is over. The result is one of the
	// Model constants. first is the time to the first delta, negative if there
	// was none; usage is nil if the model did not report it.
	ModelCalled(at holdfast.Iteration, result string, first, took time.Duration, usage *holdfast.Usage)
	// ToolCalled: a tool call is over, or was not made by this server. The result
	// is one of the Tool constants. The name is what the model wrote: only with a
	// result of a call that was started is it sure to be a configured tool's.
	ToolCalled(at holdfast.Iteration, tool, result string, took time.Duration)
	// Notified: a middleware has said that something happened, by [holdfast.Notify].
	Notified(at holdfast.Iteration, name string)
	// HookFailed: a hook of a middleware has panicked.
	HookFailed(at holdfast.Iteration, middleware, hook string)
	// IterationDone: the answer is committed, and each of its calls has a result
	// or is the frontend's. results is how many results were saved before the
	// checkpoint that includes them.
	IterationDone(at holdfast.Iteration, results int)
}

// StoreObserver is told what the store answers.
type StoreObserver interface {
	// Committed: one try to commit is over, with err as the store's answer. The
	// commit must not be changed.
	Committed(at holdfast.Iteration, c *holdfast.Commit, took time.Duration, err error)
	// LeaseRenewed: one try to renew the lease of this process is over.
	LeaseRenewed(err error)
	// Cleaned: retention is done with a thread; most of the time nothing was due.
	Cleaned(done holdfast.Cleaned)
	// Grown: a run has found its thread larger than Retention.WarnBytes.
	Grown(at holdfast.Iteration, bytes int64)
}

// OutcomeLeft is how a run ends in a process that loses it or stops: whoever
// finds it goes on. It is never stored.
const OutcomeLeft = "left"

// What becomes of a claim.
const (
	ClaimTaken   = "taken_over" // the run goes on here
	ClaimLost    = "lost"       // another process was faster
	ClaimCut     = "cut"        // the run was ended, with an error
	ClaimRefused = "refused"    // no place is free here; it is tried again
	ClaimFailed  = "failed"     // the store did not answer; it is tried again
)

// What becomes of a try of a model call.
const (
	ModelSuccess   = "success"
	ModelTruncated = "truncated" // the stream ended without its end
	ModelFailed    = "error"
	ModelCancelled = "cancelled" // the run was cancelled, lost or stopped
)

// What becomes of a tool call.
const (
	ToolSuccess   = "success"
	ToolFailed    = "error"
	ToolAsked     = "interrupt" // a person is asked; the call starts anew with the answer
	ToolCancelled = "cancelled" // cut off with its run
	ToolRefused   = "refused"   // not started: unknown, cut, declined or in doubt
	ToolReused    = "reused"    // not started: it got a recorded result
	ToolFrontend  = "frontend"  // the frontend makes the call
)
