package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Calls that are finished from outside. A contract is a tool without code: the server hands
// each of its calls out, the run ends and waits, and whoever does the work sends the result
// to the server, which goes on with the run.

// Outside says how the calls of a contract are handed out and finished.
type Outside struct {
	// Result is the JSON Schema of the result; null accepts any JSON. A result that violates
	// it is refused, and the call waits on.
	Result json.RawMessage
	// ExpiresAfter is how long a call waits for its result. After that the model is told that
	// none has come. 0 means for ever.
	ExpiresAfter time.Duration
	// Abandonable: a new message of the user gives a waiting call up. Otherwise the message
	// is refused until the call is finished or has expired.
	Abandonable bool
	// FinishedBy says who may send a result with a key or a token instead of the one-time
	// URL: empty or [access.RoleService] for services only, [access.RoleApprover] for
	// approvers too, [access.RoleUser] for the thread's owner too. With [access.RoleUser] a
	// page can make up what the model reads as the result.
	FinishedBy access.Role
	// Deliver is called with each call and its one-time URL, and returns once whoever is to do
	// the work has it. An error is the call's result. If the process dies meanwhile, it is
	// called again, with another URL and the same key; each of the URLs works. nil: results
	// come by POST /threads/{thread}/calls/{call}/result only.
	Deliver func(ctx context.Context, call OutsideCall) error
}

// OutsideCall is a call that is handed out.
type OutsideCall struct {
	// Call is the call as the model has made it. Its Key is the same however often it is
	// handed out.
	Call ToolCall
	// URL is where the result is sent, with POST and as JSON: {"result": …} or
	// {"error": "…"}. Whoever has it can finish the call, once.
	URL Secret
	// ExpiresAt is the time after which a result is too late; zero means never.
	ExpiresAt time.Time
}

// ReasonOutsideCall is the reason of the [Interrupt] with which a contract says that its
// call is to be finished from outside. The server asks nobody: it hands the call out.
const ReasonOutsideCall = "holdfast:outside_call"

// MaxOutsideResult bounds the result of a call that is finished from outside, in bytes.
const MaxOutsideResult = 256 << 10

// Validate returns an error for what cannot be, naming the field.
func (o *Outside) Validate() error {
	switch {
	case o.ExpiresAfter < 0:
		return fmt.Errorf("ExpiresAfter is %s: use 0 for calls that wait for ever", o.ExpiresAfter)
	case o.FinishedBy != "" && o.FinishedBy != access.RoleService && o.FinishedBy != access.RoleApprover && o.FinishedBy != access.RoleUser:
		return fmt.Errorf("FinishedBy is %q: use %s, %s or %s", o.FinishedBy, access.RoleService, access.RoleApprover, access.RoleUser)
	case len(o.Result) == 0:
		return nil
	}
	if _, err := schema.Compile(o.Result); err != nil {
		return fmt.Errorf("Result: %w", err)
	}
	return nil
}

// NewContract makes a tool whose calls are finished from outside. The JSON Schema of its
// arguments is inferred from Args, as [NewTool] does. Its effect is EffectOnce unless an
// option says otherwise: a call that was carried out is not handed out again unasked when
// the thread goes back to before it. The time limit of [WithTimeout] is that of Deliver.
//
// NewContract panics where [NewTool] does, and if outside cannot be used.
func NewContract[Args any](name, description string, outside Outside, options ...ToolOption) Tool {
	args, err := schema.For(reflect.TypeFor[Args]())
	if err != nil {
		panic(fmt.Sprintf("holdfast.NewContract(%q): the arguments cannot be described as JSON Schema: %v", name, err))
	}
	spec := ToolSpec{Name: name, Description: description, Parameters: args.JSON(), Outside: &outside}
	for _, o := range options {
		o(&spec)
	}
	tool, err := ContractOf(spec)
	if err != nil {
		panic(fmt.Sprintf("holdfast.NewContract(%q): %v", name, err))
	}
	return tool
}

// ContractOf makes a tool whose calls are finished from outside, of a specification with
// Outside. Without Parameters it takes any arguments.
func ContractOf(spec ToolSpec) (Tool, error) {
	switch {
	case spec.Name == "":
		return nil, errors.New("a tool needs a name")
	case spec.Outside == nil:
		return nil, errors.New("Outside is missing")
	}
	if err := spec.Outside.Validate(); err != nil {
		return nil, err
	}
	c := &contract{spec: spec}
	if len(spec.Parameters) > 0 {
		var err error
		if c.args, err = schema.Compile(spec.Parameters); err != nil {
			return nil, fmt.Errorf("Parameters: %w", err)
		}
	}
	if spec.Effect == "" {
		c.spec.Effect = EffectOnce
	}
	return c, nil
}

// contract is a tool without code.
type contract struct {
	spec ToolSpec
	args *schema.Schema // nil takes any arguments
}

// Spec implements [Tool].
func (c *contract) Spec() ToolSpec { return c.spec }

// Call implements [Tool]: it checks the arguments, and says that the call is to be finished
// from outside.
func (c *contract) Call(_ context.Context, call ToolCall) (ToolResult, error) {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if c.args != nil {
		if err := c.args.Validate(raw); err != nil {
			return ToolResult{}, &argumentsError{fmt.Errorf("the arguments of %s are not valid, nothing was started: %w", c.spec.Name, err)}
		}
	}
	return ToolResult{}, &Interrupt{Reason: ReasonOutsideCall, Message: c.spec.Name + " is finished from outside."}
}
