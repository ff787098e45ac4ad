package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast/server"
)

// banner says in a few lines what the server runs on.
func (o *options) banner(w io.Writer, addr string, cfg server.Config) {
	recovery := "on: runs cut off by a crash are continued"
	if o.recovery == "off" {
		recovery = "off: runs cut off by a crash wait for an empty-messages POST"
	}
	fmt.Fprintf(w, `holdfast %s
  listening   http://%s  (%s)
  store       %s
  agents      %s
  recovery    %s; checkpoints %s
`, version(), strings.Replace(addr, "127.0.0.1", "localhost", 1), access(cfg), storeText(o.store), o.agentsText(cfg), recovery, o.frequency)
}

func access(cfg server.Config) string {
	switch {
	case cfg.Authenticate != nil:
		return "API keys needed"
	case cfg.AllowAnonymous:
		return "for everybody: HOLDFAST_ALLOW_ANONYMOUS is set"
	default:
		return "loopback only: no API keys are set"
	}
}

// agentsText names the agents; without a file there is one, and what it runs on
// is worth a word.
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
		return path + "  (embedded; every commit is synced to disk)"
	}
	if u, err := url.Parse(store); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host + u.Path + "  (shared; as durable as its persistence is set)"
	}
	return "memory  (nothing survives the process)"
}
