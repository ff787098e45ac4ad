package holdfast

import "time"

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	// OutcomeSuccess: the model has answered, or the frontend owes results.
	OutcomeSuccess Outcome = "success"
	// OutcomeInterrupt: the run waits for a person.
	OutcomeInterrupt Outcome = "interrupt"
	// OutcomeCancelled: the user ended it.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeError: it failed, was cut off or reached a limit; an error code says which.
	OutcomeError Outcome = "error"
)

// RunInfo describes one run of a thread to its owner.
type RunInfo struct {
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
	Outcome Outcome `json:"outcome,omitempty"`
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
