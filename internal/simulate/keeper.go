package simulate

import (
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Upkeep: what servers do with threads that do not run, by themselves and when users ask for it.

// newKeeper returns what looks after the threads of a server.
func (s *server) newKeeper(base store.Store) *upkeep.Keeper {
	p := s.world.plan
	return upkeep.New(upkeep.Config{
		Store:           base,
		Engine:          s.engine,
		Limits:          s.limits,
		KeepCheckpoints: 4,
		Archivers:       1, // two that wake at once would go on in any order
		ArchiveAfter:    700 * time.Millisecond,
		// No two of these times are the same, nor is one a multiple of another.
		Retention: upkeep.Retention{
			Every:       830 * time.Millisecond,
			Due:         410 * time.Millisecond,
			Checkpoints: p.retention.Checkpoints,
			Threads:     p.retention.Threads,
			PruneBytes:  p.retention.PruneBytes,
		},
		Log:     slog.New(slog.DiscardHandler),
		Now:     s.stamp,
		NewID:   s.newID,
		Cleaned: func(threads.Cleaned) {},
		Walked:  func(int) {},
	})
}

// look begins to look after threads, if the plan says that servers do.
func (s *server) look() {
	if s.world.plan.extras.keepers && !s.isDead() {
		s.keeper.Start()
	}
}
