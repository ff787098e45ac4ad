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
	ID        string    `json:"id"`
	Agent     string    `json:"agent"`
	StartedAt time.Time `json:"startedAt"`
	// EndedAt, and Outcome (success, interrupt, cancelled, error), are missing while
	// it runs.
	EndedAt time.Time `json:"endedAt,omitzero"`
	Outcome Outcome   `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Continues is the stopped or interrupted run that this one went on with, and
	// ContinuedBy the one that went on with this.
	Continues   string `json:"continues,omitempty"`
	ContinuedBy string `json:"continuedBy,omitempty"`
	// ParentRunID is what the client said.
	ParentRunID string `json:"parentRunId,omitempty"`
}
