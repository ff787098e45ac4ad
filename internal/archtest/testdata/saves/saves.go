// Package saves is what the rule about the states of commits is tested with.
package saves

import "github.com/holdfast-agents/holdfast/store"

func sets(c *store.Commit, copied store.Commit) *store.Commit {
	c.State = nil
	c.Listings = nil
	copied.State = nil
	return &store.Commit{State: copied.State}
}

// reads is how it is meant.
func reads(c *store.Commit, h *store.Head) {
	h.State = c.State
	_ = c.Listings[0]
	_ = store.Head{State: h.State}
}
