package threads

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Usage is what a run, or a thread, has used of one model.
type Usage struct {
	holdfast.Usage
	// Cost is what that costs, in the currency of the server's prices; empty if the model has
	// no price.
	Cost json.Number `json:"cost,omitempty"`
}

// ThreadUsage is what all runs of a thread have used.
type ThreadUsage struct {
	// Runs is how many runs are counted.
	Runs int `json:"runs"`
	// Usage has one entry for each model.
	Usage []Usage `json:"usage"`
	// Cost is what it costs together; empty unless every model has a price.
	Cost json.Number `json:"cost,omitempty"`
	// Incomplete means that it cannot be told what some of the runs have used, because it was
	// not stored.
	Incomplete bool `json:"incomplete,omitempty"`
}
