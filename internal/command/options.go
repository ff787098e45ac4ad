package command

// The program's input: its settings, and the agents file that they name.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/holdfast-agents/holdfast/internal/settings"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/web"
)

// options are the program's settings, and what has been read of them.
type options struct {
	settings *settings.Settings
	getenv   func(string) string
	// agentsFile is the agents file that was read; empty if there is none.
	agentsFile string
}

func parseOptions(args []string, getenv func(string) string) (*options, error) {
	s, err := settings.Parse(args, getenv)
	if err != nil {
		return nil, err
	}
	return &options{settings: s, getenv: getenv}, nil
}

// log returns the program's log.
func (o *options) log(w io.Writer) *slog.Logger {
	h := &slog.HandlerOptions{Level: o.settings.LogLevel}
	if o.settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, h))
	}
	return slog.New(slog.NewTextHandler(w, h))
}

// load opens the demo's journal and reads the agents file. closeAll ends what both have
// opened.
func (o *options) load(log *slog.Logger) (loaded *server.Loaded, closeAll func(), err error) {
	var journal io.Writer
	closeJournal := func() {}
	if name := o.settings.DemoJournal; name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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
	o.agentsFile = cmp.Or(o.settings.File, defaultConfig)
	loaded, err := server.Load(o.agentsFile, parts)
	if errors.Is(err, fs.ErrNotExist) && o.settings.File == "" {
		o.agentsFile = ""
		loaded, err = server.Load("", parts)
	}
	if err != nil {
		return nil, err
	}
	return loaded, o.settings.Complete(loaded.Settings)
}

// parts is what the file may name. Every reader of the file needs all of it: a tool that is
// not known is a mistake in the file.
func (o *options) parts(journal io.Writer) server.Parts {
	parts := fileParts(o.getenv)
	parts.DefaultModel, parts.DemoDelay = o.settings.Config.DefaultModel, o.settings.DemoDelay
	parts.DemoJournal = journal
	return parts
}

// config returns the server's configuration, and who may call it.
func (o *options) config(loaded *server.Loaded, log *slog.Logger) (cfg server.Config, who callers, err error) {
	if who, err = readCallers(o.settings.Tokens, o.getenv, log); err != nil {
		return cfg, who, err
	}
	cfg = o.settings.Config
	cfg.Log = log
	cfg.Agents, cfg.Limits, cfg.Quotas, cfg.Prices = loaded.Agents, loaded.Limits, loaded.Quotas, loaded.Prices
	cfg.Authenticate, cfg.MultiTenant, cfg.MultiUser = who.authenticate(), who.severalTenants, who.severalUsers
	cfg.UI, cfg.Version, cfg.Settings = web.Handler(), version(), o.settings.Shown(o.agentsFile)
	if cfg.AllowAnonymous && cfg.Authenticate == nil {
		log.Warn("everyone who can reach the address may use this server and see every thread: " +
			"HOLDFAST_ALLOW_ANONYMOUS is set")
	}
	return cfg, who, nil
}
