package holdfast

import "time"

// Agent is a model with instructions, tools and middleware.
type Agent struct {
	// Name is how requests name it: POST /agents/{name}/runs.
	Name        string
	Description string
	// Instructions is the system text of every model call.
	Instructions string
	Model        Model
	Tools        []Tool
	// Middleware is run in this order, the first outermost.
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
	// empty-messages POST goes on.
	StatusStopped ThreadStatus = "stopped"
)

// ThreadInfo describes a thread to its owner.
type ThreadInfo struct {
	ID     string       `json:"id"`
	Agent  string       `json:"agent"`
	Status ThreadStatus `json:"status"`
	// Run is the running or last run.
	Run string `json:"runId"`
	// Outcome is how the last run ended: success, interrupt, cancelled, error;
	// empty while it runs.
	Outcome Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Iteration is the one that runs or runs next.
	Iteration int `json:"iteration"`
	// Cursor is the id of the last record in the thread's log.
	Cursor string `json:"cursor"`
	// Interrupts are the ids of the open questions.
	Interrupts []string `json:"interrupts,omitempty"`
	// PendingToolCalls are the frontend calls without a result.
	PendingToolCalls []string  `json:"pendingToolCallIds,omitempty"`
	UpdatedAt        time.Time `json:"updatedAt"`
	// ETag is the id of the thread's last commit.
	ETag string `json:"etag"`
	// Parent is the thread that this one was forked from, and ParentCheckpoint where.
	Parent           string `json:"parentThreadId,omitempty"`
	ParentCheckpoint string `json:"parentCheckpointId,omitempty"`
	// Size is the bytes that the thread takes in the store, by kind. Only a request
	// for one thread tells it.
	Size map[string]int64 `json:"sizeBytes,omitempty"`
}
