package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// Middleware is a set of optional hooks around a run. Wrapping hooks take the
// next function and return one that may do something before it, after it or
// instead of it; the first middleware of an agent's list is the outermost, and its
// other hooks are called first. Adding a hook to this struct never breaks an
// implementation.
//
// An [*Error] that a hook returns ends the run with its code and text, except that of
// Tool, where an error is the call's result and [*EndRun] ends the run. Any other
// error of BeforeIteration or Batch, and a panic of any hook, is
// [CodeMiddlewareFailed] with the names of the middleware and the hook; what Run and
// Model return may come from what they wrap, and is [CodeInternal]. Only
// AfterIteration is contained: it watches, so its panic is logged and counted, and
// the run goes on.
type Middleware struct {
	// Name identifies the middleware in logs, errors and metrics: "owner.name".
	Name string
	// States are the states that it keeps: see [RegisterState].
	States []AnyState
	// Run wraps a run from where it starts, or is resumed, recovered or answered,
	// to its end or its next wait. What it changes in states after next returns is
	// stored with the run's end.
	Run func(next RunCall) RunCall
	// BeforeIteration runs before each iteration. An error ends the run and leaves
	// the thread stopped at this iteration: an empty-messages POST resumes it. An
	// [*Interrupt] asks a person first: the iteration begins again with
	// Iteration.Answer set.
	BeforeIteration func(ctx context.Context, it *Iteration) error
	// AfterIteration sees an iteration whose calls all have results, before its
	// checkpoint: what it changes in states is stored with it. After a crash it may
	// see the same iteration again, without the changes it had made.
	AfterIteration func(ctx context.Context, it *Iteration, done *IterationResult)
	// Model wraps the model call. It may skip the model by yielding deltas of its
	// own. An [*Interrupt] as its error, before any delta, asks a person first.
	Model func(next ModelCall) ModelCall
	// Batch sees all tool calls of an iteration before any of them starts, and
	// decides about them. What it decides is stored with the calls. An error ends
	// the run: none of the calls is started, and their results say so.
	Batch func(ctx context.Context, b *Batch) error
	// Tool wraps one tool call: it runs it by calling next, or returns a result in
	// its place, an [*Interrupt] to ask a person, or an [*EndRun]. It runs in
	// parallel for parallel calls, and again when a call is started again after a
	// crash or an answer.
	Tool func(next ToolHandler) ToolHandler
}

// RunCall is a run, from here to its end or its next wait. The outcome is
// "success" or "interrupt".
type RunCall func(ctx context.Context, it *Iteration) (outcome string, err error)

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
	// Answer is a person's answer to the question that a hook has asked before this
	// iteration; nil if there was none.
	Answer *Answer
}

// IterationResult is what an iteration came to.
type IterationResult struct {
	// Answer is what the model said.
	Answer Message
	// Calls are the calls that it made, in order, with their results.
	Calls []CallResult
}

// CallResult is a call with its result. Of Result only Text, Parts, Failed and
// NotRun are set.
type CallResult struct {
	Call   ToolCall
	Result ToolResult
}

// Batch is the tool calls of one iteration, before any of them starts. A call that
// no hook decides about is run. Of two decisions about a call a result stands
// before a question, and otherwise the first.
type Batch struct {
	*Iteration
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

// Deny gives the i-th call a failed result with the text, which the model reads,
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

// Ask asks a person before the i-th call starts. Then the call starts through the
// Tool hooks with [ToolCall.Answer] set; if the person declines, its result says so.
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

// EndRun is the error of a Tool hook that ends the run, as soon as the calls that
// run beside it have their results. The call's own result is the text of Err.
type EndRun struct {
	Err *Error
}

// Error returns the text of the reason.
func (e *EndRun) Error() string { return "the run ends: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *EndRun) Unwrap() error { return e.Err }

// MiddlewareKind makes a middleware of what a configuration file says of it.
type MiddlewareKind struct {
	// Name is what the file calls it: "owner.name" for one that does not come with
	// Holdfast.
	Name string
	// New makes one of its options, a JSON object; [DecodeOptions] reads it. An error
	// says what is wrong with the options, and what to write instead.
	New func(options json.RawMessage) (Middleware, error)
}

// DecodeOptions reads a [MiddlewareKind]'s options into a struct. A member that the
// struct does not have is an error, so that a typing mistake never goes unnoticed.
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
