package budget

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast/state"
)

// ThreadState is what a budget remembers in a thread.
type ThreadState struct {
	// Account is the ledger's account of the thread. A fork has the account of its origin.
	Account string `json:"account,omitempty"`
	// Raised is by how much a person has raised limits of the thread, by account.
	Raised map[string]int64 `json:"raised,omitempty"`
}

// RunState is what a budget remembers in a run.
type RunState struct {
	// Account is the ledger's account of the run. A run that resumes it has the same one.
	Account string `json:"account,omitempty"`
	// Tokens is how many tokens the run has used so far.
	Tokens int64 `json:"tokens"`
	// Cost is what they have cost.
	Cost Money `json:"cost"`
	// Model is the last model that has answered and has a price.
	Model string `json:"model,omitempty"`
	// Raised is by how much a person has raised limits for this run, by account.
	Raised map[string]int64 `json:"raised,omitempty"`
	// Warned has the accounts for which [NoticeWarning] was sent.
	Warned []string `json:"warned,omitempty"`
	// Unreported reports that [NoticeUnreported] was sent.
	Unreported bool `json:"unreported,omitempty"`
	// Asked is the limit about which a person was asked.
	Asked Reached `json:"asked,omitzero"`
}

// Reached is a limit that a call would exceed. Its numbers are tokens, or millionths of the
// currency's unit.
type Reached struct {
	// Scope is run, thread, user or tenant.
	Scope string `json:"scope,omitempty"`
	// Unit is tokens or cost.
	Unit string `json:"unit,omitempty"`
	// Account is the ledger's account that the limit bounds.
	Account string `json:"account,omitempty"`
	// Used is what is used or reserved.
	Used int64 `json:"used"`
	// Needed is what the next call has to reserve.
	Needed int64 `json:"needed"`
	// Limit is the limit, including what a person has raised it by.
	Limit int64 `json:"limit"`
	// Base is the configured limit.
	Base int64 `json:"base"`
}

var (
	threadState = state.Register(state.Spec[ThreadState]{
		Name: "holdfast.budget", Version: 1, Scope: state.ScopeThread,
		Validate: func(s ThreadState) error { return validRaised(s.Raised) },
	})
	runState = state.Register(state.Spec[RunState]{
		Name: "holdfast.budget_run", Version: 1, Scope: state.ScopeRun,
		Validate: func(s RunState) error {
			if s.Tokens < 0 {
				return fmt.Errorf("tokens is %d", s.Tokens)
			}
			return validRaised(s.Raised)
		},
	})
)

// validRaised returns an error if a limit was lowered, which no answer does.
func validRaised(raised map[string]int64) error {
	for _, account := range slices.Sorted(maps.Keys(raised)) {
		if by := raised[account]; by < 0 {
			return fmt.Errorf("raised has %d for %s", by, account)
		}
	}
	return nil
}
