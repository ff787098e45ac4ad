package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// banner prints in a few lines how the server is set up.
func (o *options) banner(w io.Writer, s *server.Server, cfg server.Config) {
	recovery := "on: runs cut off by a crash are continued"
	if o.recovery == "off" {
		recovery = "off: runs cut off by a crash wait for an empty-messages POST"
	}
	fmt.Fprintf(w, `holdfast %s
  listening   http://%s  (%s)
  store       %s
%s  agents      %s
  recovery    %s; checkpoints %s
`, version(), strings.Replace(s.Addr(), "127.0.0.1", "localhost", 1), access(cfg), storeText(o.store), durabilityLine(s.Durability()), o.agentsText(cfg), recovery, o.frequency)
}

func access(cfg server.Config) string {
	switch {
	case cfg.Authenticate != nil:
		return "API keys required"
	case cfg.AllowAnonymous:
		return "for everyone: HOLDFAST_ALLOW_ANONYMOUS is set"
	default:
		return "loopback only: no API keys are set"
	}
}

// agentsText names the agents; without a file there is only one, so it names its model.
func (o *options) agentsText(cfg server.Config) string {
	if len(cfg.Agents) == 1 && cfg.Agents[0].Name == "demo" {
		return `demo: scripted, no API key needed; say "help"`
	}
	names := make([]string, len(cfg.Agents))
	for i, a := range cfg.Agents {
		names[i] = a.Name
	}
	return strings.Join(names, ", ") + "  (default model " + o.model + ")"
}

// storeText never shows a password.
func storeText(store string) string {
	if path, ok := strings.CutPrefix(store, "bolt:"); ok {
		return path + "  (embedded)"
	}
	if u, err := url.Parse(store); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host + u.Path + "  (shared)"
	}
	return "memory"
}

// durabilityLine explains the store's level; it returns "" if the level is not known.
func durabilityLine(level store.Level) string {
	meaning, ok := map[store.Level]string{
		store.LevelNone:    "nothing survives the end of this process",
		store.LevelProcess: "commits survive the end of this process, but not necessarily a crash of the machine or of the store",
		store.LevelMachine: "commits survive a crash of the machine",
	}[level]
	if !ok {
		return ""
	}
	return fmt.Sprintf("  durability  %s: %s\n", level, meaning)
}
