package holdfast

import "github.com/holdfast-agents/holdfast/access"

// Agent is a model with instructions, tools and middleware.
type Agent struct {
	// Name is how requests name it: POST /agents/{name}/runs.
	Name string
	// Description tells people what the agent is for; GET /agents lists it.
	Description string
	// Instructions is the system text of every model call.
	Instructions string
	// Model answers the conversation. It is required.
	Model Model
	// Tools are the server's tools, each with a name of its own. A frontend adds
	// its own tools with each run.
	Tools []Tool
	// Middleware runs in this order; the first is outermost.
	Middleware []Middleware
	// Policy is what this agent does with requests that find a thread busy,
	// waiting or unfinished. A request may choose otherwise in
	// forwardedProps.holdfast.
	Policy Policy
	// Approvals says who answers the agent's questions: empty or [access.RoleUser] for
	// the thread's owner, [access.RoleApprover] for callers with that role only.
	Approvals access.Role
}

// Policy says what a POST does with a thread that is not ready for new
// messages. The zero value rejects, with an error that names every way out.
type Policy struct {
	// OnBusy: "reject", or "cancel_and_run" to cancel the running run first.
	OnBusy string `json:"onBusy,omitempty"`
	// OnInterrupted: "reject", or "decline" to answer every open question with
	// "declined" and run fresh.
	OnInterrupted string `json:"onInterrupted,omitempty"`
	// OnUnfinished: "reject", or "abandon" to close what is unfinished, keep
	// every finished result and run fresh.
	OnUnfinished string `json:"onUnfinished,omitempty"`
}

// The values of [Policy].
const (
	PolicyReject       = "reject"
	PolicyCancelAndRun = "cancel_and_run"
	PolicyDecline      = "decline"
	PolicyAbandon      = "abandon"
)
