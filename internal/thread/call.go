package thread

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Call is a tool call without a result.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Run is the one under which the call was first made; with it the
	// idempotency key stays the same through every resume.
	Run      string `json:"run"`
	Frontend bool   `json:"frontend,omitempty"`
	// Cut: the model was stopped in the middle of the arguments; the call is
	// answered without being started.
	Cut bool `json:"cut,omitempty"`
	// Thread is the one in which the call was made, if that was another one: the
	// idempotency key stays the same in a fork.
	Thread string `json:"thread,omitempty"`
	// Again: the thread went back, and the call was carried out after that point.
	Again bool `json:"again,omitempty"`
	// InDoubt: Interrupt asks a person what became of the call.
	InDoubt bool `json:"inDoubt,omitempty"`
	// Interrupt is the question the call waits for, Answer what a person said.
	Interrupt *agui.Interrupt  `json:"interrupt,omitempty"`
	Answer    *holdfast.Answer `json:"answer,omitempty"`
	// Settled is the result that a hook has given the call before it started.
	Given *GivenResult `json:"settled,omitempty"`
}

// GivenResult is a result that nothing is run for.
type GivenResult struct {
	Text   string          `json:"text,omitempty"`
	Parts  []holdfast.Part `json:"parts,omitempty"`
	Failed bool            `json:"failed,omitempty"`
	NotRun bool            `json:"notRun,omitempty"`
}

func (c *Call) Waits() bool { return c.Interrupt != nil && c.Answer == nil }

// CallKey is the idempotency key: it stays the same when the call is run again.
func CallKey(thread string, call *Call) string {
	if call.Thread != "" {
		thread = call.Thread
	}
	return thread + "/" + call.Run + "/" + call.ID
}

// Intent is written before a call starts.
type Intent struct {
	Format int    `json:"format"`
	Tool   string `json:"tool"`
	// Arguments are exactly those that the call starts with.
	Arguments string         `json:"arguments,omitempty"`
	Key       string         `json:"key"`
	Fence     holdfast.Fence `json:"fence"`
	At        time.Time      `json:"at"`
}

// PendingWrite is a finished tool result that no checkpoint holds yet. Its
// content is the message; this entry says which call finished, when.
type PendingWrite struct {
	Format      int       `json:"format"`
	CallID      string    `json:"callId"`
	Tool        string    `json:"tool"`
	Message     string    `json:"messageId"`
	Failed      bool      `json:"failed,omitempty"`
	Iteration   int       `json:"iteration"`
	CompletedAt time.Time `json:"completedAt"`
}

// PutIntent says that the call is about to start.
func PutIntent(c *holdfast.Commit, thread string, call *Call, h *History, fence holdfast.Fence, now time.Time) {
	if call.Frontend {
		return
	}
	c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindIntent, ID: call.ID, Data: MustJSON(Intent{
		Format: Format, Tool: call.Name, Arguments: h.Arguments(call.ID), Key: CallKey(thread, call), Fence: fence, At: now,
	})})
}

// ResultMark is what the metadata of a result's message says of it.
type ResultMark struct {
	// Failed: it is an error's text. NotRun: nothing was started for it.
	Failed bool `json:"failed"`
	NotRun bool `json:"notRun"`
}

func MarkOf(m *agui.Message) ResultMark {
	var metadata struct {
		Holdfast ResultMark `json:"holdfast"`
	}
	if len(m.Metadata) == 0 || json.Unmarshal(m.Metadata, &metadata) != nil {
		return ResultMark{}
	}
	return metadata.Holdfast
}

// FailedMark is the metadata of a failed result.
func FailedMark(notRun bool) json.RawMessage {
	if notRun {
		return json.RawMessage(`{"holdfast":{"failed":true,"notRun":true}}`)
	}
	return json.RawMessage(`{"holdfast":{"failed":true}}`)
}

// SharedAfter names the shared state after a call by the message of its result, so that
// what a recorded result did to it can be found.
func SharedAfter(message string) string { return "s/" + message }

// The results of calls that nothing was run for. Models and people read them.
const (
	TextNotAnswered = "No result: the call was not answered."
	TextDeclined    = "No result: the person declined to answer."
	TextAbandoned   = "No result: the call was cut off before it finished, and was given up."
	TextCancelled   = "No result: the run was cancelled before the call finished."
	TextInDoubt     = "Outcome unknown: the server died while this call was running. It may have taken effect, and it was not started again. Check before you repeat it."
	TextPanicked    = "%s failed because of a mistake in the tool itself. It may have taken effect in part."
	TextCut         = "Not started: the answer was cut off in the middle of this call's arguments by the model's length limit. Make a shorter call."
)
