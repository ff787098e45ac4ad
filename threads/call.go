package threads

import (
	"encoding/json"
	"time"
)

// CallState is how far a call that is under way has come.
type CallState string

// The states of calls that are under way.
const (
	// CallPlanned: it has not been started.
	CallPlanned CallState = "planned"
	// CallStarted: it was started, and has no result.
	CallStarted CallState = "started"
	// CallRecorded: its result is stored, and in no checkpoint yet. It never runs again.
	CallRecorded CallState = "recorded"
	// CallInDoubt: it was started by a process that is gone, and may have taken effect.
	CallInDoubt CallState = "in_doubt"
	// CallWaiting: it waits for a person, or for the frontend.
	CallWaiting CallState = "waiting"
	// CallOutside: it was handed out, and is finished from outside.
	CallOutside CallState = "outside"
)

// Work is what is under way on a thread and in no checkpoint yet.
type Work struct {
	// Run is the current run, or else the last one.
	Run string `json:"runId"`
	// Status is what the thread is doing.
	Status Status `json:"status"`
	// Iteration is the current one or, if none is running, the next.
	Iteration int `json:"iteration"`
	// Process is the process that runs the thread; empty if none does.
	Process string `json:"process,omitempty"`
	// Epoch counts the owners of the thread.
	Epoch uint64 `json:"epoch"`
	// Calls are the open calls in the order in which the model made them, and then those
	// that are finished.
	Calls []WorkCall `json:"calls"`
}

// WorkCall is a call that is under way.
type WorkCall struct {
	// ID is the call's id.
	ID string `json:"toolCallId"`
	// Tool is the name of its tool.
	Tool string `json:"toolName"`
	// State is how far it has come.
	State CallState `json:"state"`
	// Effect is the [holdfast.Effect] that the tool declares; "frontend" for a frontend's
	// tool, "unknown" for one that no longer exists.
	Effect string `json:"effect"`
	// Key is its idempotency key; a frontend's call has none, and one that is recorded and had
	// no effects may lack it.
	Key string `json:"key,omitempty"`
	// Attempts is how often it was started; 0 for a planned one.
	Attempts int `json:"attempts,omitempty"`
	// StartedAt is when it was first started, as far as that is stored before it ends.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// Interrupt is the id of the question that it waits for.
	Interrupt string `json:"interruptId,omitempty"`
	// Message is the id of the message that has the result.
	Message string `json:"messageId,omitempty"`
	// Result is the content of that message: a JSON string, or an array of parts.
	Result json.RawMessage `json:"result,omitempty"`
	// Failed marks a result that reports an error.
	Failed bool `json:"failed,omitempty"`
	// EndedAt is when the result came.
	EndedAt time.Time `json:"endedAt,omitzero"`
}

// CallList is the calls of a thread's runs.
type CallList struct {
	// Calls are in the order in which models made them.
	Calls []Call `json:"calls"`
	// Next is what to ask for as before to get the calls of earlier runs; empty if there are
	// none.
	Next string `json:"next,omitempty"`
}

// Call is a tool call as the log of its run has it.
type Call struct {
	// ID is the call's id.
	ID string `json:"toolCallId"`
	// Tool is the name of its tool.
	Tool string `json:"toolName"`
	// Message is the id of the message that makes the call.
	Message string `json:"messageId,omitempty"`
	// Result is the id of the message that has the result; empty without one.
	Result string `json:"resultMessageId,omitempty"`
	// Run is the run in which it was made; empty if that is not one of those asked for.
	Run string `json:"runId,omitempty"`
	// Effect is the [holdfast.Effect] that the tool declares now; "frontend" for a frontend's
	// tool, "unknown" for one that no longer exists.
	Effect string `json:"effect"`
	// Key is its idempotency key; a frontend's call has none, and it is not known without Run.
	Key string `json:"key,omitempty"`
	// Attempts is how often it was started; 0 if nothing was.
	Attempts int `json:"attempts"`
	// Failed marks a result that reports an error.
	Failed bool `json:"failed,omitempty"`
	// Code is the error's code, if it has one.
	Code string `json:"code,omitempty"`
	// StartedAt is when it could start: when the model had made it, or when the run was
	// continued that brought its result.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// EndedAt is when its result came.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Process is the process that has stored its result, or else the one that made it.
	Process string `json:"process,omitempty"`
}
