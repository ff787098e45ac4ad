package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-agents/holdfast/server"
)

// load opens the demo's journal and reads the agents file. closeAll ends what both have
// opened.
func (o *options) load(log *slog.Logger) (loaded *server.Loaded, closeAll func(), err error) {
	var journal io.Writer
	closeJournal := func() {}
	if o.demoJournal != "" {
		f, err := os.OpenFile(o.demoJournal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open the demo journal: %w", err)
		}
		journal = f
		closeJournal = func() {
			if err := f.Close(); err != nil {
				log.Warn("the demo journal could not be closed", "error", err)
			}
		}
	}
	if loaded, err = o.configured(journal, log); err != nil {
		closeJournal()
		return nil, nil, err
	}
	return loaded, func() {
		loaded.Close()
		closeJournal()
	}, nil
}

// configured reads the agents file. If there is no file, there is one agent, unless the file
// was named explicitly.
func (o *options) configured(journal io.Writer, log *slog.Logger) (*server.Loaded, error) {
	parts := o.parts(journal)
	parts.Log = log
	o.agentsFile = orDefault(o.configFile, defaultConfig)
	loaded, err := server.Load(o.agentsFile, parts)
	if errors.Is(err, fs.ErrNotExist) && o.configFile == "" {
		o.agentsFile = ""
		return server.Load("", parts)
	}
	return loaded, err
}

// parts is what the file may name. Whoever reads the file needs all of it: a tool that is
// not known is a mistake in the file.
func (o *options) parts(journal io.Writer) server.Parts {
	return server.Parts{DefaultModel: o.model, Getenv: o.getenv, DemoDelay: o.demoDelay, DemoJournal: journal}
}

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
			log.Warn(
				"an MCP server is not waited for any longer: runs go on without its tools until it is connected to",
				"mcp",
				s.Name(),
			)
		}
	}
}
