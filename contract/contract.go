// Package contract makes tools whose calls are finished from outside: a contract is a tool
// without code, whose calls the server hands out and whose results come back to it.
package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
)

// New makes a tool whose calls are finished from outside. The JSON Schema of its
// arguments is inferred from Args, as [holdfast.NewTool] does. Its effect is [holdfast.EffectOnce] unless an
// option says otherwise: a call that was carried out is not handed out again unasked when
// the thread goes back to before it. The time limit of [holdfast.WithTimeout] is that of Deliver.
//
// New panics where [holdfast.NewTool] does, and if outside cannot be used.
func New[Args any](name, description string, outside holdfast.Outside, options ...holdfast.ToolOption) holdfast.Tool {
	args, err := schema.For(reflect.TypeFor[Args]())
	if err != nil {
		panic(fmt.Sprintf("contract.New(%q): the arguments cannot be described as JSON Schema: %v", name, err))
	}
	spec := holdfast.ToolSpec{Name: name, Description: description, Parameters: args.JSON(), Outside: &outside}
	for _, o := range options {
		o(&spec)
	}
	tool, err := Of(spec)
	if err != nil {
		panic(fmt.Sprintf("contract.New(%q): %v", name, err))
	}
	return tool
}

// Of makes a tool whose calls are finished from outside, of a specification with
// Outside. Without Parameters it takes any arguments.
func Of(spec holdfast.ToolSpec) (holdfast.Tool, error) {
	switch {
	case spec.Name == "":
		return nil, errors.New("a tool needs a name")
	case spec.Outside == nil:
		return nil, errors.New("the field Outside is missing")
	}
	if err := spec.Outside.Validate(); err != nil {
		return nil, err
	}
	c := &contract{spec: spec}
	if len(spec.Parameters) > 0 {
		var err error
		if c.args, err = schema.Compile(spec.Parameters); err != nil {
			return nil, fmt.Errorf("the field Parameters: %w", err)
		}
	}
	if spec.Effect == "" {
		c.spec.Effect = holdfast.EffectOnce
	}
	return c, nil
}

// contract is a tool without code.
type contract struct {
	spec holdfast.ToolSpec
	args *schema.Schema // nil takes any arguments
}

// Spec implements [holdfast.Tool].
func (c *contract) Spec() holdfast.ToolSpec { return c.spec }

// Call implements [holdfast.Tool]: it checks the arguments, and says that the call is to be finished
// from outside.
func (c *contract) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if c.args != nil {
		if err := c.args.Validate(ctx, raw); err != nil {
			return holdfast.ToolResult{}, &argumentsError{
				fmt.Errorf("the arguments of %s are not valid, nothing was started: %w", c.spec.Name, err),
			}
		}
	}
	return holdfast.ToolResult{}, &holdfast.Interrupt{
		Reason:  reason,
		Message: c.spec.Name + " is finished from outside.",
	}
}

// reason is that of the question with which a contract says that its call is to be finished
// from outside. The server asks nobody: it hands the call out.
const reason = "holdfast:outside_call"

// argumentsError is a [holdfast.ErrArguments] with a text for the model.
type argumentsError struct{ error }

// Unwrap returns both.
func (e *argumentsError) Unwrap() []error { return []error{holdfast.ErrArguments, e.error} }
