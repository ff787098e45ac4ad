// Package inspector reads a thread's logs, calls, usage and open questions, for pages and
// programs that look into threads. It reads what is stored, and starts nothing.
package inspector

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Config is what an Inspector needs. Every field must be set.
type Config struct {
	Store store.Store // holds all threads
	// Runs lists runs of a thread, newest first: see upkeep.Keeper.
	Runs func(ctx context.Context, who holdfast.Principal, thread, before string, limit int) ([]threads.Run, error)
	// Price returns usage with what it costs, and the sum.
	Price func(usage []holdfast.Usage) (list []threads.Usage, sum json.Number)
	// Indexed reports whether the index of the store has every thread.
	Indexed func() bool
	// Tools returns the specifications of an agent's tools.
	Tools func(agent string) []holdfast.ToolSpec
}

// Inspector looks into threads for their owners.
type Inspector struct {
	cfg  Config
	read thread.Reader
}

// New returns an Inspector.
func New(cfg Config) *Inspector { return &Inspector{cfg, thread.Reader{Store: cfg.Store}} }
