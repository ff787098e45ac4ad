package holdfast

import "time"

// RunInfo describes one run of a thread to its owner.
type RunInfo struct {
	ID        string    `json:"id"`
	Agent     string    `json:"agent"`
	StartedAt time.Time `json:"startedAt"`
	// EndedAt, and Outcome (success, interrupt, cancelled, error), are missing while
	// it runs.
	EndedAt time.Time `json:"endedAt,omitzero"`
	Outcome string    `json:"outcome,omitempty"`
	// Code is the error code of a run that ended in error.
	Code string `json:"code,omitempty"`
	// Continues is the stopped or interrupted run that this one went on with, and
	// ContinuedBy the one that went on with this.
	Continues   string `json:"continues,omitempty"`
	ContinuedBy string `json:"continuedBy,omitempty"`
	// ParentRunID is what the client said.
	ParentRunID string `json:"parentRunId,omitempty"`
}
