package holdfast

import (
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

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
	// Fallbacks are the models that are asked, in this order, if Model fails and asking it
	// again cannot help. The text that the failed one has shown is taken back. The run stays
	// with the model that has answered; the next one begins with Model again. A model's
	// encrypted values are not sent to another.
	Fallbacks []Model
	// FallbackRefused lets the next model answer what one declines to answer because of its
	// content policy. Without it such an answer ends the run.
	FallbackRefused bool
	// Tools are the server's tools, each with a name of its own. A frontend adds
	// its own tools with each run.
	Tools []Tool
	// Toolsets have further tools, which may change while the server runs. Of two tools of
	// one name the agent's own is used, then that of the toolset that is listed first.
	Toolsets []Toolset
	// Middleware runs in this order; the first is outermost.
	Middleware []Middleware
	// Policy is what this agent does with requests that find a thread busy,
	// waiting or unfinished. A request may choose otherwise in
	// forwardedProps.holdfast.
	Policy Policy
	// Client says what clients may bring besides the words of their user.
	Client ClientPolicy
	// HideToolErrors keeps the text of an error that a tool returns from the model and the
	// stream: both get a fixed text, and the log has the error. The public text of an [*Error]
	// and the mistakes in a call's arguments are still shown. Without it, the text of every
	// error is shown: write it for the model.
	HideToolErrors bool
	// Output is the form of the agent's answers: JSON that fits a schema. Without it an
	// answer is a text. See [Output].
	Output *Output
	// State is what the model is shown of the thread's shared state. Without it, nothing.
	State *sharedstate.Options
	// Revision is what tells this version of the agent from another one that Holdfast cannot
	// see: the options of its middleware, or the code of its tools. It becomes a part of the
	// agent's revision, a hash which also covers its instructions, models, tools, middleware,
	// output, limits and policy for clients, and which each run records. Change it with what
	// it stands for. In an agents file the options of models and middleware are seen.
	Revision string
	// OnRevision is what happens to a run that has lost its process, if this agent has
	// another revision than the one that the run was with: "adopt" continues it with this
	// one, and "pin" leaves it to a process that has the run's, for as long as the server's
	// PinTimeout. Empty is the server's default.
	OnRevision string
	// Approvals says who answers the agent's questions: empty or [access.RoleUser] for
	// the thread's owner, [access.RoleApprover] for callers with that role only.
	Approvals access.Role
}

// ClientPolicy says how far an agent trusts what clients send: a history, instructions,
// facts and media. It counts when a message comes in, and again whenever the model is
// shown it. A zero member is the server's default.
type ClientPolicy struct {
	// Import is what a new thread takes of the history that a client sends with it: "all"
	// (default), "users" for the user messages only, or "none" for the user messages at its
	// end only. Accepted references are marked: see [Message.Imported].
	Import string
	// Instructions is how the model is shown the system and developer messages of clients:
	// "system", with the authority of the agent's own instructions; "user", as a user
	// message that says where the text comes from; "drop", not at all. The default is "user"
	// on a server that authenticates its callers, and "system" on one without keys.
	Instructions string
	// Context is how the model is shown the facts that clients send as context; its values
	// and its default are those of Instructions.
	Context string
	// MediaURLs is which URLs of images and other media clients may send: "https"
	// (default), "any" scheme, or "none". Literal addresses of private networks and of the
	// machine itself are always refused, data: URLs never. Nothing is resolved or fetched.
	MediaURLs string
	// MediaFiles lets clients name files that the model's provider holds by their ids.
	MediaFiles bool
}

// Policy says what a POST does with a thread that is not ready for new
// messages. The zero value rejects, with an error that names every way out.
type Policy struct {
	// Chat is the policy that pages with a chat expect: it chooses cancel_and_run, decline and
	// abandon where the members below say nothing, and a list of messages that differs from
	// the history, or is shorter, branches by itself: an edit, or a message that gets a new
	// answer. A run that branches in this way gets the recorded results of earlier calls to
	// once and query tools, and asks before it makes different ones.
	Chat bool `json:"chat,omitempty"`
	// OnBusy: "reject", or "cancel_and_run" to cancel the running run first.
	OnBusy string `json:"onBusy,omitempty"`
	// OnInterrupted: "reject", or "decline" to answer every open question with
	// "declined" and run fresh.
	OnInterrupted string `json:"onInterrupted,omitempty"`
	// OnUnfinished: "reject", or "abandon" to close what is unfinished, keep
	// every finished result and run fresh.
	OnUnfinished string `json:"onUnfinished,omitempty"`
}
