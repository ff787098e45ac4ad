package holdfast

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
