// Package observe is how an engine reports what happens, for your own logs and metrics.
//
// To observe something new, give [Observer] another function and call it where it
// happens. Existing observers leave it unset and need no change.
package observe

import (
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Observer is a set of functions to call when something happens. Each may be nil. They are
// called from many goroutines, and must neither block nor keep what they are given.
// Nothing is reported for each token: the finest step is a commit.
//
// The iteration says where it happened: agent, principal, thread, run and number. Granted
// and Answer are not set.
type Observer struct {
	// RunStarted is called when this process begins to run a run. For one that was resumed
	// or taken over, kept is how many finished results of its iteration it found; their
	// tools do not run again.
	RunStarted func(at holdfast.Iteration, resumed bool, kept int)
	// RunEnded is called when this process no longer runs a run, once for each RunStarted.
	// code is that of an error, and took how long it ran here.
	RunEnded func(at holdfast.Iteration, outcome holdfast.Outcome, code string, took time.Duration)
	// SchemaChanged is called when a run continues from a checkpoint that was written with
	// other middleware states than the agent has.
	SchemaChanged func(at holdfast.Iteration, change *state.SchemaChange)
	// TakenOver is called when this process found a run whose owner is gone, and tried to
	// take it over. code is the error with which a run that nobody continues has ended.
	TakenOver func(at holdfast.Iteration, result TakeoverResult, code string)
	// ModelCalled is called after each try of a model call. first is the time to the first
	// delta, negative if there was none; usage is nil if the model did not report it.
	ModelCalled func(at holdfast.Iteration, result ModelResult, first, took time.Duration, usage *holdfast.Usage)
	// ModelFailed is called after each try of a model call that failed with a
	// [holdfast.ModelError], with what follows.
	ModelFailed func(at holdfast.Iteration, failed ModelFailure)
	// FellBack is called when a run leaves a model for another of its agent, which it asks
	// from then on. Both are "provider/model".
	FellBack func(at holdfast.Iteration, from, to string)
	// PromptSent is called after each try of a model call that has sent something, if the
	// model is one of those that come with Holdfast: it says how much of the prompt the
	// provider can have in its cache.
	PromptSent func(at holdfast.Iteration, p Prompt)
	// ToolCalled is called when a tool call is over, or was not made by this server. tool is
	// the name that the model wrote: it is sure to be a configured tool's only if the result
	// is that of a call that was started.
	ToolCalled func(at holdfast.Iteration, tool string, result ToolResult, took time.Duration)
	// OutsideCalled is called when a call was handed out to be finished from outside, when it
	// is over, and when a result was refused. tool is as for ToolCalled.
	OutsideCalled func(at holdfast.Iteration, tool string, result OutsideResult)
	// Notified is called when a middleware reported something with [holdfast.Notify].
	Notified func(at holdfast.Iteration, name string)
	// HookFailed is called when a hook of a middleware has panicked.
	HookFailed func(at holdfast.Iteration, middleware, hook string)
	// IterationDone is called when an answer is committed and each of its calls has a result
	// or is the frontend's. results is how many results were saved before the checkpoint
	// that includes them.
	IterationDone func(at holdfast.Iteration, results int)
	// Committed is called after each try to commit, with the store's answer. The commit must
	// not be changed.
	Committed func(at holdfast.Iteration, c *store.Commit, took time.Duration, err error)
	// LeaseRenewed is called after each try to renew the lease of this process.
	LeaseRenewed func(err error)
	// Cleaned is called when retention has finished with a thread; usually nothing was due.
	Cleaned func(done threads.Cleaned)
	// Walked is called when retention has come past all threads of the store, with the
	// number of those that cannot be read.
	Walked func(unreadable int)
	// IndexLooked is called for each page of threads that this process has found in the index
	// because something was due for them, and after each look without any.
	IndexLooked func(look IndexLook)
	// Grown is called once by a run that finds its thread larger than the size to warn of.
	Grown func(at holdfast.Iteration, bytes int64)
}

// IndexLook is what a look into a list of the index has found.
type IndexLook struct {
	// List is its name: due, ended, resting or aging.
	List string
	// Late has, for each thread that was not found before, how much later than its time it was
	// found, or than this process began to look.
	Late []time.Duration
	// Left is for how many threads something is due that could not be done.
	Left int
	// Mended is how many of them were in the list by mistake, and were taken out.
	Mended int
}

// IndexLists returns all names of lists that IndexLooked may report.
func IndexLists() []string {
	return []string{store.ListDue, store.ListEnded, store.ListResting, store.ListAging}
}

// OutcomeLeft is how a run ends in a process that loses it or stops. Another process, or
// this one after its restart, continues it. It is never stored.
const OutcomeLeft holdfast.Outcome = "left"

// Outcomes returns all outcomes that RunEnded may report.
func Outcomes() []holdfast.Outcome {
	return []holdfast.Outcome{
		holdfast.OutcomeSuccess,
		holdfast.OutcomeInterrupt,
		holdfast.OutcomeCancelled,
		holdfast.OutcomeError,
		OutcomeLeft,
	}
}

// TakeoverResult is the result of finding a run whose owner is gone.
type TakeoverResult string

// The results of a takeover.
const (
	TakeoverDone    TakeoverResult = "taken_over" // the run continues here
	TakeoverLost    TakeoverResult = "lost"       // another process was faster
	TakeoverCut     TakeoverResult = "cut"        // the run was ended, with an error
	TakeoverRefused TakeoverResult = "refused"    // no place is free here; it is tried again
	TakeoverFailed  TakeoverResult = "failed"     // the store did not answer; it is tried again
	TakeoverWaits   TakeoverResult = "waits"      // the run waits for a process with its agent's revision
)

// TakeoverResults returns all of them.
func TakeoverResults() []TakeoverResult {
	return []TakeoverResult{TakeoverDone, TakeoverLost, TakeoverCut, TakeoverRefused, TakeoverFailed, TakeoverWaits}
}

// ModelResult is the result of one try of a model call.
type ModelResult string

// The results of a try.
const (
	ModelSuccess   ModelResult = "success"
	ModelTruncated ModelResult = "truncated" // the stream broke off
	ModelFailed    ModelResult = "error"
	ModelCancelled ModelResult = "cancelled" // the run was cancelled, lost or stopped
)

// ModelResults returns all of them.
func ModelResults() []ModelResult {
	return []ModelResult{ModelSuccess, ModelTruncated, ModelFailed, ModelCancelled}
}

// ModelFailure is a try of a model call that failed.
type ModelFailure struct {
	// Provider and Model are whose model it is, and what the provider calls it. For a model
	// that does not say that they are "custom" and the name of its agent.
	Provider, Model string
	// Kind is what kind of failure it is; it may be empty.
	Kind failure.Kind
	// Status is the HTTP status of the provider's response; 0 if there was none.
	Status int
	// RequestID is the provider's id of the request; it may be empty.
	RequestID string
	// Attempt is the number of earlier tries at the same answer, with any model.
	Attempt int
	// Next is what follows.
	Next NextStep
	// Wait is how long the run waits before it.
	Wait time.Duration
}

// NextStep is what follows a try of a model call that failed.
type NextStep string

// The possible next steps.
const (
	NextRetry    NextStep = "retry"    // the same model is asked again
	NextShrink   NextStep = "shrink"   // the same model is asked again, and shown less
	NextFallback NextStep = "fallback" // another of the agent's models is asked
	NextEnd      NextStep = "end"      // the run ends with the error
)

// NextSteps returns all of them.
func NextSteps() []NextStep { return []NextStep{NextRetry, NextShrink, NextFallback, NextEnd} }

// Prompt is what was sent to a model, but for what may be different in the next request.
type Prompt struct {
	// Provider and Model are who was asked.
	Provider, Model string
	// Bytes is how long it was, and Repeated how much of its beginning was in the request
	// before. If only some of the earlier messages are repeated, none of them counts.
	Bytes, Repeated int
	// Cut says why not all of the request before was repeated.
	Cut PromptCut
}

// PromptCut is why a request does not begin with all of the one before.
type PromptCut string

// The reasons.
const (
	CutNone         PromptCut = "none"         // it does
	CutFirst        PromptCut = "first"        // there was none before
	CutModel        PromptCut = "model"        // another model, or other parameters
	CutTools        PromptCut = "tools"        // other tools, or other schemas
	CutWindow       PromptCut = "window"       // a middleware left messages out
	CutSummary      PromptCut = "summary"      // a summary stands in their place
	CutInstructions PromptCut = "instructions" // other system texts
	CutBranch       PromptCut = "branch"       // the history has branched, or gone back
	CutHistory      PromptCut = "history"      // an earlier message is another one
)

// PromptCuts returns all of them.
func PromptCuts() []PromptCut {
	return []PromptCut{
		CutNone,
		CutFirst,
		CutModel,
		CutTools,
		CutWindow,
		CutSummary,
		CutInstructions,
		CutBranch,
		CutHistory,
	}
}

// ToolResult is the result of a tool call.
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
	ToolOutside   ToolResult = "outside"   // handed out; the call starts again with the result
)

// ToolResults returns all of them.
func ToolResults() []ToolResult {
	return []ToolResult{
		ToolSuccess,
		ToolFailed,
		ToolAsked,
		ToolCancelled,
		ToolRefused,
		ToolReused,
		ToolFrontend,
		ToolOutside,
	}
}

// OutsideResult is what became of a call that is finished from outside.
type OutsideResult string

// The outcomes of a call.
const (
	OutsideHandedOut OutsideResult = "handed_out" // it waits for its result
	OutsideFinished  OutsideResult = "finished"   // its result has come
	OutsideExpired   OutsideResult = "expired"    // no result came in time
	OutsideGivenUp   OutsideResult = "given_up"   // by the user, or because it could not be handed out
	OutsideRefused   OutsideResult = "refused"    // a result came too late, or was another one than the first
)

// OutsideResults returns all of them.
func OutsideResults() []OutsideResult {
	return []OutsideResult{OutsideHandedOut, OutsideFinished, OutsideExpired, OutsideGivenUp, OutsideRefused}
}
