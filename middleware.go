package holdfast

// Middleware: hooks around runs, iterations, model calls and tool calls, with the
// types that the hooks see, the decisions that a Batch hook makes, and the kinds of
// middleware that a configuration file can name.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// Middleware is a set of optional hooks around a run. Wrapping hooks take the next
// function and return one that may do something before it, after it or instead of
// it. The first middleware in an agent's list is outermost, and its other hooks are
// called first. Adding a hook to this struct never breaks an implementation.
//
// An [*Error] returned by a hook ends the run with its code and text. The exception
// is Tool, where an error is the call's result and [*EndRun] ends the run. Any other
// error of BeforeIteration or Batch, and a panic of any hook, is a
// [codes.MiddlewareFailed] that names the middleware and the hook. Any other error
// returned by Run or Model may come from what they wrap, so it is a [codes.Internal].
// Only AfterIteration is contained: it just watches, so its panic is logged and
// counted, and the run continues.
type Middleware struct {
	// Name identifies the middleware in logs, errors and metrics: "owner.name".
	Name string
	// States are the states that it keeps. A key that is not listed here cannot be used.
	States []State
	// Notices are the names with which it calls [Notify]. Their counts are 0 from the
	// start, so that a monitor sees the first notice as an increase; the count of a name
	// that is not listed appears with its first notice.
	Notices []string
	// Tools are tools that it brings to the agent, whose other tools have other names. They
	// are in each request's Tools; its Model hook may leave them out.
	Tools []Tool
	// BoundsIterations: it decides how many iterations a run may use. The server does not
	// apply its own limit to an agent with such a middleware, so it must end every run.
	BoundsIterations bool
	// Run wraps a run from the point where it starts, or is resumed, recovered or
	// answered, to its end or its next wait. Changes that it makes to states after
	// next returns are stored with the run's end.
	Run func(next RunCall) RunCall
	// BeforeIteration runs before each iteration. An error ends the run and leaves
	// the thread stopped at this iteration; an empty-messages POST resumes it. An
	// [*Interrupt] asks a person first: once answered, the iteration starts over with
	// Iteration.Answer set.
	BeforeIteration func(ctx context.Context, it *Iteration) error
	// AfterIteration sees an iteration once all its calls have results, before its
	// checkpoint; changes that it makes to states are stored with that checkpoint.
	// After a crash it may see the same iteration again, without the changes it had
	// made.
	AfterIteration func(ctx context.Context, it *Iteration, done *IterationResult)
	// Model wraps the model call. It may skip the model by yielding deltas of its
	// own. An [*Interrupt] as its error, before any delta, asks a person first.
	Model func(next ModelCall) ModelCall
	// Batch sees all tool calls of an iteration before any of them starts, and
	// decides about them. Its decisions are stored with the calls. An error ends the
	// run: none of the calls starts, and their results say so.
	Batch func(ctx context.Context, b *Batch) error
	// Tool wraps one tool call: it runs the call by calling next, or instead returns a
	// result, an [*Interrupt] to ask a person, or an [*EndRun]. Parallel calls run it
	// in parallel, and a call that is started again after a crash or an answer runs it
	// again.
	Tool func(next ToolHandler) ToolHandler
}

// State is a state that a middleware keeps in the thread: a key that package state
// has registered.
type State interface {
	// StateName returns the name that the state was registered with.
	StateName() string
}

// RunCall is a run from this point to its end or its next wait. The outcome is
// "success" or "interrupt".
type RunCall func(ctx context.Context, it *Iteration) (outcome string, err error)

// ModelCall is one model call; see [Model].
type ModelCall func(ctx context.Context, req *ModelRequest) iter.Seq2[Delta, error]

// ToolHandler runs one tool call.
type ToolHandler func(ctx context.Context, tool Tool, call ToolCall) (ToolResult, error)

// Iteration is where a run stands.
type Iteration struct {
	// Agent is the name of the agent that runs.
	Agent string
	// Principal is on whose behalf it runs.
	Principal Principal
	// Thread is the id of the thread. Clients choose it, so it may have been that of
	// another thread before, and it may be that of a thread of another tenant.
	Thread string
	// Incarnation sets the thread apart from every other that had, or will have, its id. It is
	// random, made with the thread, and stays the same for as long as the thread exists.
	// One-time actions can be remembered under it.
	Incarnation string
	// Rewinds is how often the thread was rewound. A call that is made again after a
	// rewind has the same key as before, and another number of rewinds.
	Rewinds int
	// Run is the id of the run.
	Run string
	// Number is the number of the iteration, from 0. A run that was stopped and
	// resumed continues the count.
	Number int
	// Granted is the number of iterations before this one since a request started or
	// resumed the run; limits compare with it.
	Granted int
	// Imported is how many messages of the history have [Message.Imported] set. If it is 0,
	// this server has produced all of it, except for what the user wrote.
	Imported int
	// Traceparent is the W3C trace context of the request that began the run, as in the
	// header traceparent of that name; empty if it had none. The tools and models of this
	// module pass it on; tools and hooks of one's own find it with [IterationFrom].
	Traceparent string
	// Side means that the run is stored nowhere: it answers one request of a page beside its
	// conversation, with a call of a tool of that page, and ends with the request. Nobody can
	// be asked a question in it.
	Side bool
	// Answer is a person's answer to the question that a hook asked before this
	// iteration; nil if there was none.
	Answer *Answer
}

// IterationResult is the outcome of an iteration.
type IterationResult struct {
	// Answer is what the model said.
	Answer Message
	// Calls are the calls that it made, in order, with their results.
	Calls []CallResult
}

// CallResult is a call with its result.
type CallResult struct {
	// Call is the call as the model made it.
	Call ToolCall
	// Result has only Text, Parts, Failed and NotRun set.
	Result ToolResult
}

// Batch is the tool calls of one iteration, before any of them starts. A call that
// no hook decides about is run. If there are two decisions about a call, a result
// takes precedence over a question; otherwise the first one counts.
type Batch struct {
	*Iteration
	// Calls are the calls, in the model's order. To change what happens to one, use
	// Deny, Skip or Ask with its index.
	Calls     []ToolCall
	decisions []decision
}

type decision struct {
	result *ToolResult
	ask    *Interrupt
}

// NewBatch makes a batch; the server does this, and a test of a hook may.
func NewBatch(it *Iteration, calls []ToolCall) *Batch {
	return &Batch{Iteration: it, Calls: calls, decisions: make([]decision, len(calls))}
}

// Deny gives the i-th call a failed result with this text, which the model reads,
// instead of running it.
func (b *Batch) Deny(i int, text string) {
	b.Skip(i, ToolResult{Text: text, Failed: true, NotRun: true})
}

// Skip gives the i-th call a result instead of running it.
func (b *Batch) Skip(i int, result ToolResult) {
	if b.decisions[i].result == nil {
		b.decisions[i] = decision{result: &result}
	}
}

// Ask asks a person before the i-th call starts. Once answered, the call goes through
// the Tool hooks with [ToolCall.Answer] set; if the person declines, its result says
// so.
func (b *Batch) Ask(i int, question *Interrupt) {
	if b.decisions[i].result == nil && b.decisions[i].ask == nil {
		b.decisions[i].ask = question
	}
}

// Decided returns what was decided about the i-th call: a result, a question, or
// neither, if it is run.
func (b *Batch) Decided(i int) (result *ToolResult, question *Interrupt) {
	return b.decisions[i].result, b.decisions[i].ask
}

// EndRun is the error with which a Tool hook ends the run, as soon as the other calls
// under way have their results. The call's own result is the text of Err.
type EndRun struct {
	// Err is the reason, with the code and text that the run ends with. It is required.
	Err *Error
}

// Error returns the text of the reason.
func (e *EndRun) Error() string { return "the run ends: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *EndRun) Unwrap() error { return e.Err }

// MiddlewareKind makes a middleware from its entry in a configuration file.
type MiddlewareKind struct {
	// Name is what the file calls it: "owner.name" unless it comes with Holdfast.
	Name string
	// New makes a middleware from its options, a JSON object, which [DecodeOptions]
	// reads. An error says what is wrong with the options and what to write instead.
	New func(options json.RawMessage) (Middleware, error)
}

// DecodeOptions reads a [MiddlewareKind]'s options into a struct. An unknown member
// is an error, so that no typo goes unnoticed.
func DecodeOptions(options json.RawMessage, into any) error {
	if len(bytes.TrimSpace(options)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(options))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the options cannot be read: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the options")
	}
	return nil
}
