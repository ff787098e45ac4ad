package holdfast

import "time"

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

// ThreadStatus is what a thread is doing.
type ThreadStatus string

// The statuses of a thread.
const (
	// StatusIdle: the last run ended and nothing is left to do.
	StatusIdle ThreadStatus = "idle"
	// StatusRunning: a run is under way, or is being recovered.
	StatusRunning ThreadStatus = "running"
	// StatusInterrupted: the run waits for a person's answer.
	StatusInterrupted ThreadStatus = "interrupted"
	// StatusStopped: the run was cut off, failed or reached a limit; an
	// empty-messages POST resumes it.
	StatusStopped ThreadStatus = "stopped"
)

// ThreadInfo describes a thread to its owner.
type ThreadInfo struct {
	// ID is the thread's id, which the client chose.
	ID string `json:"id"`
	// Agent is the name of the agent that ran the last run.
	Agent string `json:"agent"`
	// Status is what the thread is doing now.
	Status ThreadStatus `json:"status"`
	// Run is the current run, or else the last one.
	Run string `json:"runId"`
	// Outcome is how the last run ended: success, interrupt, cancelled, error;
	// empty while it runs.
	Outcome Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Iteration is the current iteration or, if none is running, the next one;
	// counted from 0.
	Iteration int `json:"iteration"`
	// Cursor is the id of the last record in the thread's log.
	Cursor string `json:"cursor"`
	// Interrupts are the ids of the open questions.
	Interrupts []string `json:"interrupts,omitempty"`
	// PendingToolCalls are the frontend calls without a result.
	PendingToolCalls []string `json:"pendingToolCallIds,omitempty"`
	// UpdatedAt is the time of the thread's last commit.
	UpdatedAt time.Time `json:"updatedAt"`
	// ETag is the id of the thread's last commit.
	ETag string `json:"etag"`
	// Parent is the thread that this one was forked from; empty if it is not a fork.
	Parent string `json:"parentThreadId,omitempty"`
	// ParentCheckpoint is the checkpoint of Parent at which the fork began.
	ParentCheckpoint string `json:"parentCheckpointId,omitempty"`
	// Size is how many bytes the thread takes in the store, by kind. It is set only
	// when a single thread is requested, since computing it may read the whole thread.
	Size map[string]int64 `json:"sizeBytes,omitempty"`
}
