// Package threads has the read models of a thread: what callers are shown of its status,
// its checkpoints and its size, and what they say to rewind, fork and prune it. The JSON
// forms are those of the HTTP API.
package threads

import (
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// Status is what a thread is doing.
type Status string

// The statuses of a thread.
const (
	// StatusIdle: the last run ended and nothing is left to do here. Calls may wait for the
	// frontend, or for somebody outside: see Info.
	StatusIdle Status = "idle"
	// StatusRunning: a run is under way, or is being recovered.
	StatusRunning Status = "running"
	// StatusInterrupted: the run waits for a person's answer.
	StatusInterrupted Status = "interrupted"
	// StatusStopped: the run was cut off, failed or reached a limit; an
	// empty-messages POST resumes it.
	StatusStopped Status = "stopped"
	// StatusUnreadable: what the thread does cannot be told, because its head is damaged
	// or was written by a newer version. It is only in lists, with the code of the error
	// that everybody gets who asks for the thread. It can be deleted.
	StatusUnreadable Status = "unreadable"
)

// Info describes a thread to its owner.
type Info struct {
	// ID is the thread's id, which the client chose.
	ID string `json:"id"`
	// User is whose thread it is; set only in lists of the threads of all users.
	User string `json:"user,omitempty"`
	// Title is what lists call the thread: the beginning of its first message, or what a
	// person has called it.
	Title string `json:"title,omitempty"`
	// Hidden: a person has put the thread away; lists for people leave it out.
	Hidden bool `json:"hidden,omitempty"`
	// CreatedAt is when the thread was made.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Agent is the name of the agent that ran the last run.
	Agent string `json:"agent"`
	// Status is what the thread is doing now.
	Status Status `json:"status"`
	// Run is the current run, or else the last one.
	Run string `json:"runId"`
	// Outcome is how the last run ended: success, interrupt, cancelled, error; empty while
	// it runs, and for a thread that went back into the middle of it.
	Outcome holdfast.Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error; of an unreadable thread, that
	// of the error that asking for it gets.
	Code string `json:"code,omitempty"`
	// Text says why a thread is stopped or unreadable, and what to do next.
	Text string `json:"message,omitempty"`
	// Waiting is set while the thread's run waits for a server with its agent, or with its
	// agent's revision.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Iteration is the current iteration or, if none is running, the next one;
	// counted from 0.
	Iteration int `json:"iteration"`
	// Cursor is the id of the last record in the thread's log; empty while there is none,
	// as in a new fork.
	Cursor string `json:"cursor"`
	// Interrupts are the open questions.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	// PendingToolCalls are the frontend calls without a result.
	PendingToolCalls []string `json:"pendingToolCallIds,omitempty"`
	// OutsideCalls are the calls that wait for a result from outside.
	OutsideCalls []OutsideCall `json:"outsideCalls,omitempty"`
	// UpdatedAt is the time of the thread's last commit.
	UpdatedAt time.Time `json:"updatedAt"`
	// ETag is the id of the last commit that changed what clients see of the thread.
	ETag string `json:"etag"`
	// Parent is the thread that this one was forked from; empty if it is not a fork.
	Parent string `json:"parentThreadId,omitempty"`
	// ParentCheckpoint is the checkpoint of Parent at which the fork began.
	ParentCheckpoint string `json:"parentCheckpointId,omitempty"`
	// Owner is the id of the server process that runs the thread, which is random, made at its
	// start; empty if none does. Over HTTP it is the header Holdfast-Owner of an answer about one
	// thread.
	Owner string `json:"-"`
	// Size is how many bytes the thread takes in the store, by kind. It is set only
	// when a single thread is requested, since computing it may read the whole thread.
	Size map[string]int64 `json:"sizeBytes,omitempty"`
}

// List is a page of threads with one status.
type List struct {
	// Threads are those that came to that status last, the latest first; of those that run, the thread that
	// was made last.
	Threads []Info `json:"threads"`
	// Next is what to ask for as before to get the next page; zero if there is none. A page
	// that has one may be short, or empty.
	Next time.Time `json:"next,omitzero"`
}

// Waiting is a run that has lost its server and is pinned to its agent's revision, which
// none of the other servers has.
type Waiting struct {
	// Revision is the revision that it was with, and waits for if it is pinned; empty if that is
	// not known.
	Revision string `json:"revision"`
	// Since is when its server was found to be gone.
	Since time.Time `json:"since"`
	// Until is when the run ends with the error revision_gone, or agent_not_found.
	Until time.Time `json:"until"`
}

// Description changes how a thread is listed. A member that is nil stays as it is.
type Description struct {
	// Title is the title that a person gives the thread, at most 256 bytes. The server does
	// not change it any more. An empty one brings back the title that the server makes.
	Title *string `json:"title,omitempty"`
	// Hidden puts the thread away, or shows it again.
	Hidden *bool `json:"hidden,omitempty"`
}

// Interrupt is an open question.
type Interrupt struct {
	// ID is what an answer names.
	ID string `json:"id"`
	// Reason says what kind of question it is: who asks, and for what.
	Reason string `json:"reason"`
	// Message is the question, for a person.
	Message string `json:"message,omitempty"`
	// ToolCallID is the call that waits for the answer; empty if a middleware asks.
	ToolCallID string `json:"toolCallId,omitempty"`
	// ResponseSchema is the JSON schema of the answer; missing if any answer will do.
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	// ExpiresAt is until when it can be answered, an RFC 3339 time; empty without a limit.
	ExpiresAt string `json:"expiresAt,omitempty"`
	// Metadata is what the tool or the middleware that asks says beside it.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// OutsideCall is a call that waits to be finished from outside.
type OutsideCall struct {
	// ID is the call's id.
	ID string `json:"toolCallId"`
	// Tool is the name of its tool.
	Tool string `json:"toolName"`
	// ExpiresAt is until when a result is taken; missing without a limit.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Abandonable: a new message gives the call up.
	Abandonable bool `json:"abandonable,omitempty"`
}

// MaxCallResult bounds what comes from outside for a call, in bytes.
const MaxCallResult = 256 << 10

// OutsideResult is what comes from outside for a call.
type OutsideResult struct {
	// Result is any JSON. A string is shown to the model as it is, anything else as JSON.
	Result json.RawMessage
	// Error is what the model reads of work that failed, if Failed is set.
	Error string
	// Failed: there is an Error and no Result.
	Failed bool
}

// FinishedCall says that the result of an outside call was taken. It is the same each time
// that the result is sent.
type FinishedCall struct {
	// Thread is the thread's id.
	Thread string `json:"threadId"`
	// ID is the call's id.
	ID string `json:"toolCallId"`
	// Tool is the name of its tool.
	Tool string `json:"toolName"`
	// Run is the run that goes on with the result; empty if the thread waits for more.
	Run string `json:"runId,omitempty"`
	// FinishedAt is when the result came.
	FinishedAt time.Time `json:"finishedAt"`
}

// Run describes one run of a thread to its owner.
type Run struct {
	// ID is the run's id.
	ID string `json:"id"`
	// Agent is the name of the agent that ran it.
	Agent string `json:"agent"`
	// Revision is the revision of the agent that the run is, or was last, with: a short hash of
	// what shapes its runs.
	Revision string `json:"revision,omitempty"`
	// StartedAt is when the run was accepted.
	StartedAt time.Time `json:"startedAt"`
	// Durability is what commits survived when the run was accepted: none, process, machine or
	// failover; empty if that is not known.
	Durability string `json:"durability,omitempty"`
	// EndedAt is when the run ended; missing while it runs.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Outcome is how the run ended: success, interrupt, cancelled or error; missing
	// while it runs, and in a fork for a run that went on elsewhere.
	Outcome holdfast.Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Text says why that run ended, and what to do next.
	Text string `json:"message,omitempty"`
	// Interrupts are the questions that the thread's last run asks and nobody has answered.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	// Continues is the stopped or interrupted run that this one continued; empty for
	// a fresh run.
	Continues string `json:"continues,omitempty"`
	// ContinuedBy is the run that continued this one; empty if there is none.
	ContinuedBy string `json:"continuedBy,omitempty"`
	// ParentRunID is the parent run that the client named; the server only stores it.
	ParentRunID string `json:"parentRunId,omitempty"`
	// Processes are those that have run it, the first one first. Of very many, those after the
	// first are left out.
	Processes []RunProcess `json:"processes,omitempty"`
	// Records is how many records the run has in the thread's log; 0 for the run of another
	// thread that a fork was made in.
	Records uint64 `json:"records,omitempty"`
	// Usage is what the run has used, or has used so far, with one entry for each model.
	Usage []Usage `json:"usage,omitempty"`
	// Cost is what that costs together; empty unless every model has a price.
	Cost json.Number `json:"cost,omitempty"`
}

// RunProcess is a process that has run a run, or a part of it.
type RunProcess struct {
	// Process is the process's id: random, made at its start.
	Process string `json:"process"`
	// Epoch counts the owners of the thread.
	Epoch uint64 `json:"epoch"`
	// Tag is what the cursors of the records that it has written end with.
	Tag string `json:"tag"`
	// Since is when it began, or took the run over.
	Since time.Time `json:"since"`
}

// StatePatch is a change of a thread's shared state.
type StatePatch struct {
	// Patch is a JSON Patch (RFC 6902), or a merge patch (RFC 7396) if Merge is set.
	Patch json.RawMessage
	// Merge says which of the two it is.
	Merge bool
	// ETag, if it is not empty, must be the thread's, or the name of the version of the state.
	ETag string
}

// PatchedState is a thread after a change of its shared state.
type PatchedState struct {
	*Info
	// Version is the name of the version of the state that the change has made, or has found if it
	// changed nothing; empty if there is no state.
	Version string `json:"stateVersion,omitempty"`
}

// State is the current states of a thread.
type State struct {
	// State is what the application shares with the agent; null if there is none.
	State json.RawMessage `json:"state"`
	// Version is the name of this version of it, which a request may name as the one that it has
	// changed; empty if there is none.
	Version string `json:"stateVersion,omitempty"`
	// MiddlewareState has the form that [Detail] describes.
	MiddlewareState json.RawMessage `json:"middlewareState,omitempty"`
}
