package holdfast

// A model is asked with a [ModelRequest] and answers in [Delta]s, the last of which says why
// it stopped, or fails with a [ModelError], which says what may be tried next. The models that
// come with Holdfast are in the packages under model.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/failure"
)

// Model answers a conversation, piece by piece. A model may also say whose it is, with a
// method
//
//	ModelName() (provider, model string)
//
// such as "openai" and what the provider calls it, and what tells it from a model of the
// same name that is asked elsewhere or with another key, with a method
//
//	CircuitKey() string
//
// so that a model that fails with one key is still asked with another: a short hash, never
// the key. It may say whether its provider enforces the form of an answer, req.Output, which
// may depend on the rest of the request, and which media it takes in messages and makes, with
// methods
//
//	EnforcesOutput(req *ModelRequest) bool
//	Media() (takes, makes map[PartType]bool)
//
// where a type that is not in a map is undeclared: it depends on something that the model does
// not know. The models that come with Holdfast do all of this.
//
// A model that is an agent itself (see package remote) carries out calls of its own. It says so
// with a method
//
//	Continues() bool
//
// and may then yield [Delta].More, [Delta].Result and [CallDelta].Own: its sequence is read on
// after a message is complete, and the iterations of the run are its messages.
type Model interface {
	// Stream calls the model. The sequence yields deltas until one with Finish
	// set, which must be the last; a sequence that ends without it is a
	// truncation and is retried, never a success. An error ends the sequence;
	// wrap it in [ModelError] to say whether another try can help. Stream must
	// return soon after ctx is done.
	Stream(ctx context.Context, req *ModelRequest) iter.Seq2[Delta, error]
}

// ModelFunc is a function that is a [Model].
type ModelFunc func(ctx context.Context, req *ModelRequest) iter.Seq2[Delta, error]

// Stream calls f.
func (f ModelFunc) Stream(ctx context.Context, req *ModelRequest) iter.Seq2[Delta, error] {
	return f(ctx, req)
}

// ModelRequest is what a model is asked.
type ModelRequest struct {
	// Thread is the id of the thread.
	Thread string
	// Run is the id of the run.
	Run string
	// Model is which of the agent's models is asked, as "provider/model". A hook reads it;
	// changing it changes nothing.
	Model string
	// Iteration is the iteration of the run, counted from 0.
	Iteration int
	// Attempt is the number of earlier attempts at this iteration's call.
	Attempt int
	// Overflows is how many times the provider has said that this conversation is too long for
	// the model. Middleware that bounds the model's view shows less after each.
	Overflows int
	// Cut is why this request does not continue the one before it: "window" or "summary" if
	// less of the conversation is shown from now on, "tools" if the tools have changed. Only
	// the call with which that happens has it; it is empty for every other.
	Cut string
	// Instructions are the agent's and the run's system texts, in order.
	Instructions []string
	// ClientInstructions are the client's system texts that are not to have the authority of
	// Instructions: see [ClientPolicy]. Only Model hooks see them here; before the model
	// itself is called they become the first message, and Context the last if the agent says
	// so. Instructions that a client has changed within the thread are in the tail instead.
	ClientInstructions []string
	// Messages is the well-formed history: every tool call has exactly one
	// result. Reasoning messages are in it; activity messages are not, but an answer of a
	// model that has made images has them in its Parts. A model or middleware that changes a
	// message works on a copy of the list.
	Messages []Message
	// Tail is how many messages at the end of Messages are not of the history, and may be
	// different in the next request: what the client says of the moment, or a note of a
	// middleware. They stay last, so that a provider's cache of the prompt holds all before
	// them.
	Tail int
	// Tools are the server's and the frontend's tools, in the order of their names.
	Tools []ToolSpec
	// ToolChoice is whether tools must be called: "required", "none", or empty for as the
	// model likes. A client chooses it, in forwardedProps.toolChoice, and a model passes it on
	// to its provider. Calls that it does not allow are refused whatever the model does.
	ToolChoice string
	// ChosenTool is the tool that must be called; ToolChoice is "required" then. It is empty
	// for any.
	ChosenTool string
	// Context are read-only facts from the frontend. A model shows them as a system message
	// behind all others, if its API takes one there, and otherwise in front of the newest words
	// of the user, at ContextPlace: behind them they would be taken for what is to be answered.
	Context []ContextItem
	// ContextAt is where in Messages the facts stand if the agent has them shown with the
	// authority of a user: Context is empty then. It is counted from 1, and 0 if they do not.
	// The next request of the thread repeats what stands before them, and what stands behind
	// them in another place.
	ContextAt int
	// State is what the model is shown of the thread's shared state, as JSON on one line; null
	// if that is nothing. With "all" it is the document, with "paths" an object with a member
	// for each path: see [sharedstate.Options]. A model shows it behind the history, in front of the
	// tail, in the words of StateText. A hook may change it for this request.
	State json.RawMessage
	// StateTooLarge is how many bytes State would have if that is more than the agent shows;
	// State is null then.
	StateTooLarge int
	// ForwardedProps are the application's parameters. The server reads only the members
	// holdfast and toolChoice of them.
	ForwardedProps json.RawMessage
	// Output is the form that the answer must have once it calls no tools; nil for any. A
	// model that does not say that it can enforce it (see [Model]) is told so in its
	// Instructions instead, and Output is nil.
	Output *Output
}

// History returns the messages without the tail.
func (r *ModelRequest) History() []Message { return r.Messages[:len(r.Messages)-r.tail()] }

// ContextPlace returns the place in Messages of the newest message of the user, in front of
// which the facts of the frontend stand: 0 if a middleware shows none, so that they never come
// last.
func (r *ModelRequest) ContextPlace() int {
	history := r.History()
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == RoleUser {
			return i
		}
	}
	return 0
}

// tail is Tail within the bounds of the list, which a middleware may have shortened.
func (r *ModelRequest) tail() int { return min(max(r.Tail, 0), len(r.Messages)) }

// ContextItem is a fact that the frontend gives to the model.
type ContextItem struct {
	// Description says what the fact is about.
	Description string `json:"description"`
	// Value is the fact itself.
	Value string `json:"value"`
}

// Delta is one piece of a model's answer. Any of its fields may be set.
type Delta struct {
	// Text continues the answer.
	Text string
	// Reasoning continues the visible reasoning.
	Reasoning string
	// ReasoningSecret is what the provider needs back of this reasoning: signatures, or
	// encrypted reasoning. It is stored with the reasoning message, shown to frontends as
	// it is, and handed back in [Message].EncryptedValue. A model gives it once for each
	// reasoning message, whole, before the text or the call that follows, and writes into
	// it whose it is: only that provider and model may be sent it again.
	ReasoningSecret string
	// Call continues a tool call.
	Call *CallDelta
	// Media is an image, or other media, that the model has made: a whole part with its
	// source. Frontends are shown it as an activity, once the answer is complete, and the
	// model gets it back in [Message].Parts of its answer.
	Media *Part
	// Usage reports tokens; the last report counts.
	Usage *Usage
	// MessageID is what the model's side calls the message, in a delta of it. It comes back in
	// the message's Metadata, as the member remote of holdfast.
	MessageID string
	// Beside is an event of AG-UI, as JSON, that stands beside the answer: a change of the
	// shared state, a step, an activity, RAW or CUSTOM. Nothing else may be in it.
	Beside string
	// More ends a message of an answer that has several: what came so far is complete, and is
	// stored. Only a model that Continues may use it.
	More bool
	// Result is what came of a call that the model's side has carried out (see
	// [CallDelta].Own): a message with CallID, the ID that the call was given, and Text or
	// Parts, or Error. It follows the More of the message that has the call.
	Result *Message
	// Finish says why the model stopped; it marks the last delta.
	Finish FinishReason
}

// CallDelta is a piece of a tool call. Pieces with the same Index belong to
// one call; the first has Name.
type CallDelta struct {
	// Index tells the calls of one answer apart.
	Index int
	// ID is the provider's id of the call; empty or repeated ids are replaced.
	ID string
	// Name is the tool's name, in the first piece.
	Name string
	// Arguments continues the JSON text of the arguments.
	Arguments string
	// EncryptedValue is what the provider needs back of this call, such as a signature. It
	// is handed back in [ToolCall].EncryptedValue. Given once, in any piece of the call;
	// like ReasoningSecret of [Delta] it says whose it is.
	EncryptedValue string
	// Own, in the last piece of a call, says that the arguments are complete and that the model's
	// side carries the call out by itself, from now on: the server never starts it. Of the
	// specification only Effect and InDoubt count. They say what happens if the model is lost
	// before the Result has come; InDoubt may then be "fail" too, which ends the run.
	Own *ToolSpec
}

// FinishReason is why a model stopped.
type FinishReason string

// The reasons. A model that was cut off by its token limit finishes with FinishLength, one
// that was cut off by a filter of its provider with FinishFilter: what it said is kept, and
// calls that it did not complete never start, of which the last may be one.
const (
	FinishStop      FinishReason = "stop"
	FinishToolCalls FinishReason = "tool_calls"
	FinishLength    FinishReason = "length"
	FinishFilter    FinishReason = "content_filter"
)

// ModelError is a failed model call.
type ModelError struct {
	// Kind is what kind of failure it is; it may be empty.
	Kind failure.Kind
	// Retryable says that another attempt with the same model may succeed, for example
	// after an overload, a timeout or a stream that was cut off.
	Retryable bool
	// RetryAfter is how long the provider asked to wait; 0 if it did not.
	RetryAfter time.Duration
	// Public is a text that is safe to show to the caller; if it is empty, the caller
	// gets a general one. The person in front of a page reads it only if there is no Kind,
	// and otherwise what a failure of that kind means to them.
	Public string
	// Provider is who served the model, such as "openai". Like the fields below it is for
	// the log, and may be empty.
	Provider string
	// Model is what the provider calls the model.
	Model string
	// Status is the HTTP status of the provider's response; 0 if there was none.
	Status int
	// RequestID is the provider's id of the request, by which its support finds it.
	RequestID string
	// Err is the cause, for the log.
	Err error
}

// Error returns the cause's text and where it comes from, for the log.
func (e *ModelError) Error() string {
	text := e.Public
	if e.Err != nil {
		text = e.Err.Error()
	}
	var from []string
	for _, part := range []struct{ name, value string }{
		{"kind", string(e.Kind)}, {"provider", e.Provider}, {"model", e.Model}, {"request", e.RequestID},
	} {
		if part.value != "" {
			from = append(from, part.name+" "+part.value)
		}
	}
	if e.Status != 0 {
		from = append(from, fmt.Sprintf("status %d", e.Status))
	}
	if len(from) == 0 {
		return "model call failed: " + text
	}
	return "model call failed (" + strings.Join(from, ", ") + "): " + text
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// ErrTruncated is the cause of the [ModelError] for a stream that ended
// without a Finish.
var ErrTruncated = errors.New("the model's stream ended before its answer was complete")
