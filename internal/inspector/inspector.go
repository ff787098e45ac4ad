// Package inspector is what threads show to whoever looks into them: the log of a run, what is
// under way, the calls that were made and what they cost, and all open questions. It reads
// what is stored, and starts nothing.
package inspector

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Config is what an Inspector needs. Every field must be set.
type Config struct {
	Store store.Store // holds all threads
	// Log reads a part of the log of a run.
	Log func(ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor,
		limit int) (*agui.Page, error)
	// Runs lists runs of a thread, newest first: see upkeep.Keeper.
	Runs func(ctx context.Context, who holdfast.Principal, thread, before string, limit int) ([]threads.Run, error)
	// Price returns usage with what it costs, and the sum.
	Price func(usage []holdfast.Usage) (list []threads.Usage, sum json.Number)
	// Tools returns the specifications of an agent's tools.
	Tools func(agent string) []holdfast.ToolSpec
	// Allow returns an error for what the caller may not do.
	Allow func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error
}

// Inspector looks into threads for their owners.
type Inspector struct {
	cfg  Config
	read thread.Reader
}

// New returns an Inspector.
func New(cfg Config) *Inspector { return &Inspector{cfg, thread.Reader{Store: cfg.Store}} }

// mayRead returns an error for a caller who may not read threads.
func (in *Inspector) mayRead(ctx context.Context, who holdfast.Principal) error {
	return in.cfg.Allow(ctx, who, access.Read, "")
}

// Log returns up to limit records of a run after a cursor (zero: from its first), without
// waiting for more.
func (in *Inspector) Log(
	ctx context.Context,
	who holdfast.Principal,
	thread, run string,
	after store.Cursor,
	limit int,
) (*agui.Page, error) {
	if err := in.mayRead(ctx, who); err != nil {
		return nil, err
	}
	return in.cfg.Log(ctx, who, thread, run, after, limit)
}
