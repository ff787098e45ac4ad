package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/secret"
)

// Calls that are finished from outside. A contract (see package contract) is a tool without
// code: the server hands each of its calls out, the run ends and waits, and the person or
// system that does the work sends the result to the server, which goes on with the run.

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
	// Deliver is called with each call and its one-time URL, and returns once the receiver has
	// it. An error is the call's result. If the process dies meanwhile, it is called again,
	// with another URL and the same key; each of the URLs works. nil: results come by POST
	// /threads/{thread}/calls/{call}/result only.
	Deliver func(ctx context.Context, call OutsideCall) error
}

// OutsideCall is a call that is handed out.
type OutsideCall struct {
	// Call is the call as the model has made it. Its Key is the same however often it is
	// handed out.
	Call ToolCall
	// URL is where the result is sent, with POST and as JSON: {"result": …} or {"error": "…"}.
	// Anyone who has it can finish the call, once.
	URL secret.Text
	// ExpiresAt is the time after which a result is too late; zero means never.
	ExpiresAt time.Time
}

// Validate returns an error for what cannot be, naming the field.
func (o *Outside) Validate() error {
	switch {
	case o.ExpiresAfter < 0:
		return fmt.Errorf("the field ExpiresAfter is %s: use 0 for calls that wait for ever", o.ExpiresAfter)
	case o.FinishedBy != "" && o.FinishedBy != access.RoleService && o.FinishedBy != access.RoleApprover &&
		o.FinishedBy != access.RoleUser:
		return fmt.Errorf("the field FinishedBy is %q: use %s, %s or %s", o.FinishedBy, access.RoleService,
			access.RoleApprover, access.RoleUser)
	case len(o.Result) == 0:
		return nil
	}
	if _, err := schema.Compile(o.Result); err != nil {
		return fmt.Errorf("the field Result: %w", err)
	}
	return nil
}
