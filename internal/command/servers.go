package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-agents/holdfast/server"
)

// readyTime is how long the start waits for MCP servers. A run that begins without the tools
// of one goes on without them, so the first runs after a start should have them.
const readyTime = 10 * time.Second

// errUntried is what a server says that was not tried yet.
var errUntried = errors.New("it was not tried yet")

// waitForServers waits until each MCP server was tried once, and the log says for which it
// does. Those that a reload takes over were tried before.
func waitForServers(ctx context.Context, loaded *server.Loaded, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	now, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	stop(errUntried)
	for _, s := range loaded.Servers {
		if err := s.Ready(now); !errors.Is(err, errUntried) {
			continue
		}
		log.Info("waiting for an MCP server", "mcp", s.Name())
		if err := s.Ready(ctx); err != nil && ctx.Err() != nil {
			log.Warn("an MCP server is not waited for any longer: runs go on without its tools "+
				"until it is connected to", "mcp", s.Name())
		}
	}
}
