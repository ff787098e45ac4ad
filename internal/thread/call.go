package thread

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// A tool call between the model's message and its result. The head lists the open calls;
// an intent says that one is about to start, and a pending write that one has finished.
// With these three a takeover knows what was done, what was not, and what is in doubt.

// Call is a tool call that has no result yet, as the head keeps it.
type Call struct {
	// ID is the tool call id that the model chose.
	ID string `json:"id"`
	// Name is the tool's name as the model wrote it.
	Name string `json:"name"`
	// Run is the id of the run in which the call was first made. It keeps the
	// idempotency key the same through every resume.
	Run string `json:"run"`
	// Frontend means that the client makes the call and posts its result.
	Frontend bool `json:"frontend,omitempty"`
	// Own is set if the model's side carries the call out; nil for most.
	Own *OwnCall `json:"own,omitempty"`
	// Cut means that the model was stopped in the middle of the arguments; the call
	// gets a result without being started.
	Cut bool `json:"cut,omitempty"`
	// Key is the call's idempotency key, if it is not the one that its thread gives it
	// because the call was made in another thread. See [State.CallKey].
	Key string `json:"key,omitempty"`
	// Edited is the CallHash of the arguments that a person has chosen instead of the
	// model's; empty if nobody has. The idempotency key is derived from it too.
	Edited string `json:"edited,omitempty"`
	// Kept is what the call has kept, to go on from there; null if nothing.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Again means that the thread went back to before the call was carried out.
	Again bool `json:"again,omitempty"`
	// Repeats means that Interrupt asks whether the call is made although its tool was called
	// before the history branched.
	Repeats bool `json:"repeats,omitempty"`
	// InDoubt means that Interrupt asks a person what became of the call.
	InDoubt bool `json:"inDoubt,omitempty"`
	// Unknown means that the call is in doubt because its tool could not tell what became
	// of it, and not because its process died; or not before its user has logged in.
	Unknown bool `json:"unknown,omitempty"`
	// Outside is how far a call has come that is finished from outside; nil for others, and
	// before it is handed out.
	Outside *OutsideCall `json:"outside,omitempty"`
	// TellDeclined means that the tool is called with the answer to Interrupt also if the
	// person declines.
	TellDeclined bool `json:"tellDeclined,omitempty"`
	// Interrupt is the question that the call waits for; nil if there is none.
	Interrupt *agui.Interrupt `json:"interrupt,omitempty"`
	// Answer is a person's answer to Interrupt; nil until it is given.
	Answer *holdfast.Answer `json:"answer,omitempty"`
	// Attempts is how often the call was started, if it was started again, because its process
	// died or a person asked for that; 0 for others.
	Attempts int `json:"attempts,omitempty"`
	// Given is the result that a hook gave the call before it started; nil for most.
	Given *GivenResult `json:"settled,omitempty"`
}

// StartAgain counts that the call, which was started before, is about to be started once more.
func (c *Call) StartAgain() { c.Attempts = max(c.Attempts, 1) + 1 }

// GivenResult is the result of a call that did not run.
type GivenResult struct {
	// Text is what the model reads.
	Text string `json:"text,omitempty"`
	// Parts are the result's parts, if it is more than text.
	Parts []holdfast.Part `json:"parts,omitempty"`
	// Failed means that the model reads an error.
	Failed bool `json:"failed,omitempty"`
	// NotRun means that nothing was started for the call.
	NotRun bool `json:"notRun,omitempty"`
}

// TextUnsure is what the model reads of a call in doubt of which nobody can say more.
func (c *Call) TextUnsure() string {
	if c.Unknown {
		return TextUnknown
	}
	return TextInDoubt
}

// Waits reports whether the call waits for a person's answer.
func (c *Call) Waits() bool { return c.Interrupt != nil && c.Answer == nil }

// Intent is committed before a call starts. If the process dies, it tells the next owner that
// the call may have taken effect.
type Intent struct {
	// Format is the format of this value.
	Format int `json:"dataFormat"`
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Arguments are exactly the ones that the call starts with.
	Arguments string `json:"arguments,omitempty"`
	// Key is the call's idempotency key.
	Key string `json:"key"`
	// Fence is that of the owner that starts the call.
	Fence store.Fence `json:"fence"`
	// At is when the call starts.
	At time.Time `json:"at"`
	// Effect and InDoubt are what the tool declares, should it not be there any more when the
	// call is looked at again.
	Effect  holdfast.Effect `json:"effect,omitempty"`
	InDoubt holdfast.Doubt  `json:"inDoubt,omitempty"`
	// NotStarted means that the owner has left the run, or ended it, without having started the
	// call.
	NotStarted bool `json:"notStarted,omitempty"`
}

// PendingWrite marks a finished tool result that no checkpoint holds yet. The content
// is in the result's message; this value says which call finished, and when.
type PendingWrite struct {
	// Format is the format of this value.
	Format int `json:"dataFormat"`
	// CallID is the id of the finished call.
	CallID string `json:"callId"`
	// Tool is the name of its tool.
	Tool string `json:"tool"`
	// Message is the id of the message that holds the result.
	Message string `json:"messageId"`
	// Failed means that the result is an error's text.
	Failed bool `json:"failed,omitempty"`
	// Iteration is the iteration that made the call.
	Iteration int `json:"iteration"`
	// CompletedAt is when the call finished.
	CompletedAt time.Time `json:"completedAt"`
}

// PutIntent adds the intent of a call to the commit c. key is the call's idempotency key, and
// i has the fence, the time and what the tool declares. A frontend's call has no intent: the
// server does not start it.
func PutIntent(c *store.Commit, key string, call *Call, h *History, i Intent) {
	if call.Frontend {
		return
	}
	i.Format, i.Tool, i.Arguments, i.Key = FormatBefore, call.Name, h.Arguments(call.ID), key
	if i.Effect == "" {
		i.Effect = holdfast.EffectIdempotent
	}
	c.Put = append(c.Put, store.Value{Kind: store.KindIntent, ID: call.ID, Data: MustJSON(i)})
}
