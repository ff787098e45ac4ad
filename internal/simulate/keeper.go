package simulate

import (
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/threads"
)

// newKeeper returns what looks after the threads of a server.
func (s *server) newKeeper() *upkeep.Keeper {
	return upkeep.New(upkeep.Config{
		Store:           s.link,
		Engine:          s.engine,
		KeepCheckpoints: 4,
		ArchiveAfter:    2 * time.Second,
		Log:             slog.New(slog.DiscardHandler),
		Now:             s.stamp,
		NewID:           s.newID,
		Cleaned:         func(threads.Cleaned) {},
		Walked:          func(int) {},
	})
}
