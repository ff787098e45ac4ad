package threads

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Checkpoint is a listed head of a thread.
type Checkpoint struct {
	// ID grows with the thread: a later checkpoint has a larger one.
	ID string `json:"id"`
	// ThreadID is the thread that it is a checkpoint of.
	ThreadID string `json:"threadId"`
	// CreatedAt is when it was taken.
	CreatedAt time.Time `json:"createdAt"`
	// ETag is the id of the commit that took it.
	ETag string `json:"etag,omitempty"`
	// Format is the version of its stored form.
	Format int `json:"format"`
	// Agent is the name of the agent that was running.
	Agent string `json:"agent"`
	// Run is the run in which it was taken.
	Run string `json:"runId"`
	// RunStartedAt is when that run was accepted.
	RunStartedAt time.Time `json:"runStartedAt,omitzero"`
	// Status is what the thread was doing. Going back to a checkpoint that was taken
	// during a run leaves the thread stopped at that point.
	Status Status `json:"status"`
	// Iteration is the next iteration, counted from 0.
	Iteration int `json:"iteration"`
	// Message is the id of the last message of the history; empty if there is none.
	Message string `json:"messageId,omitempty"`
	// Messages is the number of messages in the history; 0 also in a checkpoint from
	// before they were counted.
	Messages int `json:"messageCount,omitempty"`
	// Metadata says where the checkpoint comes from.
	Metadata Metadata `json:"metadata"`
}

// Metadata says where a checkpoint comes from.
type Metadata struct {
	// Source is "input" (a run was accepted), "loop" (an iteration or a run ended),
	// "update" (made by hand) or "fork" (the thread began at another checkpoint, or
	// went back to one).
	Source string `json:"source"`
	// Step is the next iteration; -1 for source "input".
	Step int `json:"step"`
	// Parent is the id of the previous checkpoint; for a fork, of the one it was made
	// from. Empty for the first.
	Parent string `json:"parentCheckpointId,omitempty"`
	// ParentThread is the thread of Parent, if that is another one.
	ParentThread string `json:"parentThreadId,omitempty"`
	// Label is the name that a person has given it, or that a tool or a hook has, with
	// [holdfast.Mark].
	Label string `json:"label,omitempty"`
}

// Detail is a checkpoint with everything it holds.
type Detail struct {
	Checkpoint
	// History is the messages up to the checkpoint, as AG-UI 1.0 JSON.
	History []json.RawMessage `json:"messages"`
	// State is the shared state; null if there was none.
	State json.RawMessage `json:"state"`
	// MiddlewareState is the states of the middleware as [state.States.MarshalJSON] writes
	// them, redacted where a state asks for it.
	MiddlewareState json.RawMessage `json:"middlewareState,omitempty"`
	// OpenCalls are the tool calls without a result at that time.
	OpenCalls []OpenCall `json:"openToolCalls,omitempty"`
	// PendingWrites are the finished results that no checkpoint holds yet; only
	// the newest checkpoint has any.
	PendingWrites []PendingWrite `json:"pendingWrites,omitempty"`
	// Outcome is how the run had ended: success, interrupt, cancelled or error; empty
	// if it had not ended.
	Outcome holdfast.Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that had ended in error.
	Code string `json:"code,omitempty"`
	// Text says why the thread was stopped, and what to do next.
	Text string `json:"message,omitempty"`
	// Interrupts are the questions that were open.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

// OpenCall is a tool call without a result.
type OpenCall struct {
	// ID is the id of the call.
	ID string `json:"toolCallId"`
	// Tool is the name of the tool that was called.
	Tool string `json:"toolName"`
	// Interrupt is the id of the question whose answer the call waits for; empty if
	// it waits for none.
	Interrupt string `json:"interruptId,omitempty"`
}

// PendingWrite is a finished tool result that has been saved but is not in any
// checkpoint yet.
type PendingWrite struct {
	// CallID is the id of the call that it is the result of.
	CallID string `json:"toolCallId"`
	// Tool is the name of the tool that was called.
	Tool string `json:"toolName"`
	// Message is the id of the tool message that holds the result.
	Message string `json:"messageId"`
	// Result is the content of that message: a JSON string, or an array of parts.
	Result json.RawMessage `json:"result"`
	// Failed marks a result that reports an error; such a call is finished too and
	// never runs again.
	Failed bool `json:"failed,omitempty"`
	// Iteration is the iteration that made the call, counted from 0.
	Iteration int `json:"iteration"`
	// ThreadID is the thread of the call.
	ThreadID string `json:"threadId"`
	// CompletedAt is when the tool returned.
	CompletedAt time.Time `json:"completedAt"`
}

// Mark asks for a manual checkpoint.
type Mark struct {
	// Label is a name for the checkpoint; it may be empty.
	Label string `json:"label,omitempty"`
	// State replaces the shared state; null leaves it as it is.
	State json.RawMessage `json:"state,omitempty"`
	// ETag, if set, must match the thread's; otherwise the request is refused.
	ETag string `json:"-"`
}
