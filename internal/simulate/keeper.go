package simulate

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Upkeep: what servers do with threads that do not run, by themselves and when users ask for it.

// newKeeper returns what looks after the threads of a server.
func newKeeper(
	keep upkeep.Retention, base store.Store, engine *owner.Engine, limits *quota.Limiter, now clock.Shared,
	id func(string) string,
) *upkeep.Keeper {
	return upkeep.New(upkeep.Config{
		Store:           base,
		Engine:          engine,
		Limits:          limits,
		KeepCheckpoints: 4,
		Archivers:       1, // two that wake at once would go on in any order
		ArchiveAfter:    700 * time.Millisecond,
		// No two of these times are the same, nor is one a multiple of another.
		Retention: upkeep.Retention{
			Every:       keep.Every,
			Due:         410 * time.Millisecond,
			Checkpoints: keep.Checkpoints,
			Threads:     keep.Threads,
			PruneBytes:  keep.PruneBytes,
		},
		Log:   slog.New(slog.DiscardHandler),
		Now:   now,
		NewID: id,
		CheckState: func(ctx context.Context, agent string, state json.RawMessage) error {
			return engine.Agents().CheckState(ctx, agent, state)
		},
		Cleaned: func(threads.Cleaned) {},
		Walked:  func(int) {},
	})
}
