package holdfast

// Tools: what an agent can do, and what each tool declares about running twice. Here
// are the Tool interface, the call and its result, questions to people (Interrupt),
// and NewTool, which makes a tool from a Go function.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Tool is something that an agent can do.
type Tool interface {
	// Spec describes the tool: its name, what it does and what arguments it takes.
	Spec() ToolSpec
	// Call runs the tool. An error is a finished result whose text the model reads,
	// unless it is an [*Interrupt], which asks a person first. The context carries
	// the call: see [CallFrom].
	Call(ctx context.Context, call ToolCall) (ToolResult, error)
}

// Toolset is a set of tools that may change while the server runs, like those of another
// server. An agent's run has the tools that there are when it begins, or is continued in
// another process, until it ends.
//
// A set whose tools come only some time after the process has started can have a method
// AwaitTool(ctx context.Context, name string) error. It is called for an open call of a run
// that is continued, if there is no tool of its name; the call waits until it returns, and
// nothing else does. It returns when the tool is there, when it is clear that it does not
// come soon, and at once if the name cannot be that of one of its tools.
type Toolset interface {
	// Tools returns the tools as they are now. It is called often, so it only returns a list
	// that is there: the same slice, unchanged, as long as nothing has changed, and another
	// one afterwards.
	Tools() []Tool
}

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	// Name is what the model calls the tool; unique within an agent.
	Name string
	// Description tells the model what the tool does and when to use it.
	Description string
	// Parameters is the JSON Schema of the arguments.
	Parameters json.RawMessage
	// Effect says what running the tool twice would do. Empty means
	// EffectIdempotent.
	Effect Effect
	// Timeout bounds one call; 0 means the server's default.
	Timeout time.Duration
	// Query finds out what became of a call that was cut off. EffectQuery needs it.
	Query QueryFunc
	// InDoubt says what to do with a call that may or may not have taken effect.
	// Empty means DoubtTell.
	InDoubt Doubt
	// Metadata is what the client attached to a frontend tool, as JSON.
	Metadata json.RawMessage
	// Outside says that calls are finished from outside, and how; nil for all other tools.
	// Package contract makes such a tool.
	Outside *Outside
}

// Effect says what happens to a call whose process died before its result was
// saved.
type Effect string

// The effects. If the tool is pure or idempotent, a call that was cut off runs again
// with the same arguments and the same key. The server never starts a call of a once
// tool twice: the call is in doubt. A query tool is asked first; if it does not know
// either, the call is in doubt.
const (
	EffectPure       Effect = "pure"
	EffectIdempotent Effect = "idempotent"
	EffectOnce       Effect = "once"
	EffectQuery      Effect = "query"
)

// Doubt says what to do with a call in doubt.
type Doubt string

// The policies. DoubtTell gives the model a failed result that says so. DoubtAsk
// shows a person what is known and asks whether the call took effect.
const (
	DoubtTell Doubt = "tell"
	DoubtAsk  Doubt = "ask"
)

// Fate is what became of a call that was cut off.
type Fate string

// The fates. FateDone: it took effect, and this is its result. FateNotDone: it did
// not and will not take effect, so it runs now. FateUnknown: it is in doubt.
const (
	FateDone    Fate = "done"
	FateNotDone Fate = "not_done"
	FateUnknown Fate = "unknown"
)

// QueryFunc finds out by the call's key what became of it. An error means
// FateUnknown.
type QueryFunc func(ctx context.Context, call ToolCall) (ToolResult, Fate, error)

// ToolCall is one call of a tool.
type ToolCall struct {
	// ID is unique in the thread.
	ID string
	// Name is the name of the tool.
	Name string
	// Arguments is the JSON text that the model wrote.
	Arguments json.RawMessage
	// EncryptedValue is opaque data of the provider that is sent back to it unchanged.
	EncryptedValue string
	// Metadata is whatever the call's author attached, as JSON.
	Metadata json.RawMessage

	// Key is the call's idempotency key. It is the same when the call runs again after
	// a crash, and no other call has it, of whichever tenant, user or thread: pass it to
	// whatever the tool calls. With arguments that a person has edited, a call has another
	// key than with the model's. It is opaque, made of letters and digits.
	Key string
	// Principal is on whose behalf the tool is called.
	Principal Principal
	// Thread is the id of the thread.
	Thread string
	// Run is the id of the run.
	Run string
	// Iteration is the iteration that made the call, counted from 0.
	Iteration int
	// Frontend: the tool is the frontend's. Hooks decide about its calls as about any
	// other; a call that they let pass is left to the frontend.
	Frontend bool
	// State is the thread's shared state when the call began; null if it has none.
	// Change it with [UpdateState].
	State json.RawMessage
	// Answer is a person's answer, if the call had asked for one.
	Answer *Answer
	// Kept is what the call has kept with [Keep] before it was cut off or asked a person;
	// null if nothing. The call goes on from there.
	Kept json.RawMessage
	// Again: the call may have been started before, by a process that is gone, by a hook that
	// retries it, or until a person had it run again. A tool that reaches nobody then cannot say
	// that nothing was done.
	Again bool
	// Finished: the call's result is there already, from outside or because the tool was
	// asked what became of the call, and is on its way through the hooks. The tool is not
	// called for it, so hooks that decide whether a call is made let it pass.
	Finished bool
}

// ToolResult is what a tool returned.
type ToolResult struct {
	// Text is the result; empty if Parts holds it.
	Text string
	// Parts is a result in parts; nil if Text holds it.
	Parts []Part
	// Failed marks a result that reports an error.
	Failed bool
	// NotRun: nothing was started for this result. A middleware that answers in a
	// tool's place sets it.
	NotRun bool
}

// Interrupt is the error that a tool returns to ask a person. The run ends with the
// question and waits without any goroutine, socket or timer; when the answer
// comes, the tool is called again with [ToolCall.Answer] set.
type Interrupt struct {
	// Reason is "input_required", "confirmation", "tool_call" or a name of your
	// own in the form "framework:name".
	Reason string
	// Message is the question as the person reads it.
	Message string
	// ResponseSchema is the JSON Schema of the answer's payload; null accepts anything.
	ResponseSchema json.RawMessage
	// ExpiresAt is the time after which an answer is too late; zero means never.
	ExpiresAt time.Time
	// Metadata is passed on to the frontend with the question, as JSON.
	Metadata json.RawMessage
	// TellDeclined: the tool is called again also if the person declines to answer, with
	// an answer that is marked so. Otherwise the call's result says that they declined.
	TellDeclined bool
}

// The reasons of questions that every frontend knows, from AG-UI.
const (
	// ReasonToolCall asks for the approval of a call; the answer's payload is an object with
	// "approved", and in "editedArgs" it may have the arguments to call with instead.
	ReasonToolCall = "tool_call"
	// ReasonInputRequired asks for anything else.
	ReasonInputRequired = "input_required"
)

// Error says that a person is needed.
func (i *Interrupt) Error() string { return "a person is asked: " + i.Message }

// Answer is a person's answer to an [Interrupt].
type Answer struct {
	// InterruptID is the id of the question.
	InterruptID string `json:"interruptId"`
	// Reason is the interrupt's Reason, so that code that asks more than one question
	// can tell which one was answered.
	Reason string `json:"reason,omitempty"`
	// Payload is the answer; null if the person gave none.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Metadata is what the client attached to the answer, as JSON.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Asked is the interrupt's Metadata. Code that asks with one of AG-UI's reasons, as
	// others do, can tell by it whether the question was its own.
	Asked json.RawMessage `json:"-"`
	// Declined: the question was abandoned without an answer. A tool sees such an answer
	// only if it asked with TellDeclined; otherwise the call's result says so.
	Declined bool `json:"declined,omitempty"`
}

// ToolOption changes the [ToolSpec] of a new tool.
type ToolOption func(*ToolSpec)

// WithEffect declares what running the tool twice would do.
func WithEffect(e Effect) ToolOption { return func(s *ToolSpec) { s.Effect = e } }

// WithTimeout bounds one call of the tool.
func WithTimeout(d time.Duration) ToolOption { return func(s *ToolSpec) { s.Timeout = d } }

// WithQuery declares that the tool can be asked what became of a call.
func WithQuery(f QueryFunc) ToolOption {
	return func(s *ToolSpec) { s.Effect, s.Query = EffectQuery, f }
}

// WithInDoubt says what becomes of a call in doubt.
func WithInDoubt(d Doubt) ToolOption { return func(s *ToolSpec) { s.InDoubt = d } }

// NewTool makes a tool from a Go function. The JSON Schema of its arguments is
// inferred from Args, a struct: json tags name the members, a jsonschema tag
// describes one, omitempty makes it optional. Arguments that violate the schema
// never reach the function: the model gets all violations in one message. A
// string result is passed on unchanged, anything else as JSON.
//
// NewTool panics if the name is empty or Args cannot be described: that is a mistake
// in the program, and this way it shows up at startup.
func NewTool[Args, Result any](
	name, description string, f func(context.Context, Args) (Result, error), options ...ToolOption,
) Tool {
	if name == "" {
		panic("holdfast.NewTool: a tool needs a name")
	}
	s, err := schema.For(reflect.TypeFor[Args]())
	if err != nil {
		panic(fmt.Sprintf("holdfast.NewTool(%q): the arguments cannot be described as JSON Schema: %v", name, err))
	}
	spec := ToolSpec{Name: name, Description: description, Parameters: s.JSON(), Effect: EffectIdempotent}
	for _, o := range options {
		o(&spec)
	}
	return &funcTool[Args, Result]{spec: spec, schema: s, f: f}
}

type funcTool[Args, Result any] struct {
	spec   ToolSpec
	schema *schema.Schema
	f      func(context.Context, Args) (Result, error)
}

// Spec implements [Tool].
func (t *funcTool[Args, Result]) Spec() ToolSpec { return t.spec }

// Call implements [Tool]: it checks the arguments against the schema, calls the function
// and encodes its result.
func (t *funcTool[Args, Result]) Call(ctx context.Context, call ToolCall) (ToolResult, error) {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := t.schema.Validate(ctx, raw); err != nil {
		return ToolResult{}, &argumentsError{
			fmt.Errorf("the arguments of %s are not valid, nothing was run: %w", t.spec.Name, err),
		}
	}
	var args Args
	if err := json.Unmarshal(raw, &args); err != nil {
		return ToolResult{}, &argumentsError{
			fmt.Errorf("the arguments of %s cannot be read, nothing was run: %w", t.spec.Name, err),
		}
	}
	result, err := t.f(ctx, args)
	if err != nil {
		return ToolResult{}, err
	}
	return resultOf(result)
}

// ErrArguments is wrapped by the error of a tool made by [NewTool] if its arguments
// are invalid. Calling the tool again with the same arguments cannot succeed.
var ErrArguments = errors.New("invalid arguments")

// argumentsError is an ErrArguments with a text for the model.
type argumentsError struct{ error }

// Unwrap returns both.
func (e *argumentsError) Unwrap() []error { return []error{ErrArguments, e.error} }

func resultOf(v any) (ToolResult, error) {
	switch r := v.(type) {
	case ToolResult:
		return r, nil
	case string:
		return ToolResult{Text: r}, nil
	case json.RawMessage:
		return ToolResult{Text: string(r)}, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ToolResult{}, fmt.Errorf("the result cannot be written as JSON: %w", err)
	}
	return ToolResult{Text: string(b)}, nil
}

type callKey struct{}

type callContext struct {
	call   ToolCall
	update func(StateUpdate)
	kept   *atomic.Pointer[json.RawMessage] // by Keep; shared by all contexts of the call
}

// StateUpdate computes a new shared state from the old one, which is null if the
// thread has none.
type StateUpdate func(state json.RawMessage) (json.RawMessage, error)

// ContextWithCall returns a context that carries the call to a tool's function. The
// server does this; tests of tools may too. State updates go to update or, if that is
// nil, to the update function of the call that the context already carries.
func ContextWithCall(ctx context.Context, call ToolCall, update func(StateUpdate)) context.Context {
	kept := &atomic.Pointer[json.RawMessage]{}
	if c, ok := ctx.Value(callKey{}).(callContext); ok {
		if update == nil {
			update = c.update
		}
		if c.call.ID == call.ID {
			kept = c.kept
		}
	}
	return context.WithValue(ctx, callKey{}, callContext{call, update, kept})
}

// CallFrom returns the call that a tool's function serves: its id, its
// idempotency key, the person's answer. Outside a call it is the zero value.
func CallFrom(ctx context.Context) ToolCall {
	c, _ := ctx.Value(callKey{}).(callContext)
	if c.kept != nil {
		if v := c.kept.Load(); v != nil {
			c.call.Kept = *v
		}
	}
	return c.call
}

// ErrNoCall is returned by [UpdateState] and [Keep] outside a tool call.
var ErrNoCall = errors.New("there is no tool call in this context")

// UpdateState changes the thread's shared state together with the result of the
// current tool call: both are saved in one commit, so that neither a crash nor a
// parallel tool can lose or repeat the change. The update runs after the call has
// succeeded, and not at all if it fails.
func UpdateState(ctx context.Context, update StateUpdate) error {
	c, ok := ctx.Value(callKey{}).(callContext)
	if !ok || c.update == nil {
		return ErrNoCall
	}
	c.update(update)
	return nil
}

// maxKept bounds what a call can keep, in bytes.
const maxKept = 64 << 10

// Keep saves a JSON value with the current tool call, in place of what the call has kept
// before. When it returns nil, the value is durable: should the process die, the call is
// made again with the value in [ToolCall].Kept, whatever its tool's effect is, because a
// call that has kept something is one that can go on. So a tool that starts work elsewhere
// keeps the handle of that work before it waits for it, and with a handle it only waits.
//
// The value may be a secret: neither the stream nor the model gets it. It is forgotten with
// the call's result, and with the checkpoints that were made meanwhile. It has at most
// 64 KiB. An error means that it is not known to be saved.
func Keep(ctx context.Context, value json.RawMessage) error {
	c, ok := ctx.Value(callKey{}).(callContext)
	r, err := runFrom(ctx)
	switch {
	case !ok || err != nil || r.Keep == nil:
		return ErrNoCall
	case len(value) > maxKept:
		return fmt.Errorf("a call can keep %d bytes, this value has %d", maxKept, len(value))
	case !json.Valid(value):
		return errors.New("what a call keeps must be JSON")
	}
	value = bytes.Clone(value)
	if err := r.Keep(ctx, c.call.ID, value); err != nil {
		return err
	}
	c.kept.Store(&value)
	return nil
}

// ErrCancelled is the cause ([context.Cause]) of the end of a tool's context if the user has
// cancelled the run. Any other cause, such as the end of the process, leaves the run to be
// continued, so work that goes on elsewhere must be left alone.
var ErrCancelled = errors.New("cancelled by the user")

// ErrOutcomeUnknown is wrapped by the error of a tool that has sent something and cannot
// tell what became of it, because a connection broke or a time was up. It is no failure:
// the call is in doubt, as if its process had died. By the tool's effect the call is looked
// up or a person is asked, and a call of a once tool is never made again unasked.
var ErrOutcomeUnknown = errors.New("the outcome of the call is not known")
