package budget

import "github.com/holdfast-agents/holdfast"

// ThreadState is what [New] keeps of a thread.
type ThreadState struct {
	// Account is where the ledger counts the thread; a fork has that of its origin.
	Account string `json:"account,omitempty"`
	// Raised is by how much a person has raised the thread's limits, by account.
	Raised map[string]int64 `json:"raised,omitempty"`
}

// RunState is what [New] keeps of a run.
type RunState struct {
	// Account is where the ledger counts the run; a run that resumes it goes on there.
	Account string `json:"account,omitempty"`
	// Tokens and Cost are what the run has used so far.
	Tokens int64 `json:"tokens"`
	Cost   Money `json:"cost"`
	// Model is the last one that has answered and has a price.
	Model string `json:"model,omitempty"`
	// Raised is by how much a person has raised limits for this run, by account.
	Raised map[string]int64 `json:"raised,omitempty"`
	// Warned are the accounts of which it was said that they are nearly used up.
	Warned []string `json:"warned,omitempty"`
	// Unreported: it was said that the model does not report its usage.
	Unreported bool `json:"unreported,omitempty"`
	// Asked is the limit that a person is asked about.
	Asked Reached `json:"asked,omitzero"`
}

// Reached is a limit that stands in the way of a call. Its numbers are tokens,
// or millionths of the currency's unit.
type Reached struct {
	Scope   string `json:"scope,omitempty"`
	Unit    string `json:"unit,omitempty"` // tokens or cost
	Account string `json:"account,omitempty"`
	Used    int64  `json:"used"`
	// Needed is what is to be set aside for the next call.
	Needed int64 `json:"needed"`
	// Limit is with what a person has raised it by, Base as it is configured.
	Limit int64 `json:"limit"`
	Base  int64 `json:"base"`
}

var (
	threadState = holdfast.RegisterState(holdfast.StateSpec[ThreadState]{
		Name: "holdfast.budget", Version: 1, Scope: holdfast.ScopeThread,
	})
	runState = holdfast.RegisterState(holdfast.StateSpec[RunState]{
		Name: "holdfast.budget_run", Version: 1, Scope: holdfast.ScopeRun,
	})
)
