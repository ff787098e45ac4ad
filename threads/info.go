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
	// StatusIdle: the last run ended and nothing is left to do.
	StatusIdle Status = "idle"
	// StatusRunning: a run is under way, or is being recovered.
	StatusRunning Status = "running"
	// StatusInterrupted: the run waits for a person's answer.
	StatusInterrupted Status = "interrupted"
	// StatusStopped: the run was cut off, failed or reached a limit; an
	// empty-messages POST resumes it.
	StatusStopped Status = "stopped"
)

// Info describes a thread to its owner.
type Info struct {
	// ID is the thread's id, which the client chose.
	ID string `json:"id"`
	// Agent is the name of the agent that ran the last run.
	Agent string `json:"agent"`
	// Status is what the thread is doing now.
	Status Status `json:"status"`
	// Run is the current run, or else the last one.
	Run string `json:"runId"`
	// Outcome is how the last run ended: success, interrupt, cancelled, error;
	// empty while it runs.
	Outcome holdfast.Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Iteration is the current iteration or, if none is running, the next one;
	// counted from 0.
	Iteration int `json:"iteration"`
	// Cursor is the id of the last record in the thread's log; empty while there is none,
	// as in a new fork.
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

// Run describes one run of a thread to its owner.
type Run struct {
	// ID is the run's id.
	ID string `json:"id"`
	// Agent is the name of the agent that ran it.
	Agent string `json:"agent"`
	// StartedAt is when the run was accepted.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when the run ended; missing while it runs.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Outcome is how the run ended: success, interrupt, cancelled or error; missing
	// while it runs.
	Outcome holdfast.Outcome `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Continues is the stopped or interrupted run that this one continued; empty for
	// a fresh run.
	Continues string `json:"continues,omitempty"`
	// ContinuedBy is the run that continued this one; empty if there is none.
	ContinuedBy string `json:"continuedBy,omitempty"`
	// ParentRunID is the parent run that the client named; the server only stores it.
	ParentRunID string `json:"parentRunId,omitempty"`
}

// State is the current states of a thread.
type State struct {
	// State is what the application shares with the agent; null if there is none.
	State json.RawMessage `json:"state"`
	// MiddlewareState has the form that [Detail] describes.
	MiddlewareState json.RawMessage `json:"middlewareState,omitempty"`
}
