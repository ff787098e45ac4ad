package loop

import (
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The items of a run's inbox.

// Item is what a request, possibly in another process, leaves for a run's owner.
type Item struct {
	Type string `json:"type"` // cancel, describe, mark, state or result
	Run  string `json:"run"`  // the run that it is for
	thread.Amendment
	// Call and Result are a call that is finished from outside, and what has come for it.
	Call   string                `json:"call,omitempty"`
	Result *thread.OutsideResult `json:"result,omitempty"`
}

const (
	ItemCancel   = "cancel"
	ItemDescribe = "describe"
	ItemMark     = "mark"
	ItemState    = "state"
	ItemResult   = "result"
)

// inbox is what a run does with the items of its inbox.
type inbox struct {
	mu routine.Lock // one reads at a time, so items are taken in their order
	// seen is the number of the newest item that was taken. It changes under mu and in the
	// writer's turn, so the commit that ends the run knows what it includes.
	seen uint64
	// owed means that an item has cancelled the run, or is a result that the run may not have
	// stored yet. Until its end no item is removed, so that the next owner would find that one.
	owed bool
}
