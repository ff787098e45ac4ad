package server

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Banner prints in a few lines how the server is set up: its version, where it listens and
// who may call it, the store and what commits in it survive, the agents and recovery. It
// shows no secrets but the token of the operators of a server without keys that serves its own
// machine (see [Config].OperatorToken). A server that does not listen has no line about that, and
// one that has not started none about what it has agreed upon with others.
func (s *Server) Banner(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "holdfast %s\n", s.cfg.Version)
	if s.front.listener != nil {
		address := "http://" + strings.Replace(s.Addr(), "127.0.0.1", "localhost", 1)
		fmt.Fprintf(&b, "  listening   %s  (%s)\n", address, s.cfg.access())
		if s.cfg.forOperatorHere() {
			fmt.Fprintf(&b, "  operator    %s/#token=%s  (your page: figures, settings, tools by hand, kill)\n",
				address, s.operators.token)
		}
	}
	fmt.Fprintf(&b, "  store       %s\n%s", s.cfg.storeText(), durabilityLine(s.level))
	if format := s.engine.DataFormat(); !format.Alone && s.opening.isOpen() {
		fmt.Fprintf(&b, "  data        %s\n", format)
	}
	now := s.served.Load()
	fmt.Fprintf(&b, "  agents      %s\n%s", now.agentsText(), now.chainsText())
	recovery := "on: runs cut off by a crash are continued"
	if s.cfg.NoRecovery {
		recovery = "off: runs cut off by a crash wait for an empty-messages POST"
	}
	fmt.Fprintf(&b, "  recovery    %s; checkpoints %s\n", recovery, s.cfg.CheckpointFrequency)
	if !s.cfg.Chat && !slices.ContainsFunc(now.Agents, func(a holdfast.Agent) bool { return a.Policy.Chat }) {
		b.WriteString("  chat        off: while a run is in progress, new messages and edits at /runs are refused; " +
			"--chat lets them take over\n")
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}

// access says who may call the server.
func (c *Config) access() string {
	switch {
	case c.Authenticate != nil:
		return "API keys required"
	case c.AllowAnonymous:
		return "for everyone: anonymous access is allowed"
	default:
		return "loopback only: no API keys are set"
	}
}

// forOperatorHere reports whether the person at this machine can operate the server.
func (c *Config) forOperatorHere() bool {
	return c.Authenticate == nil && !c.AllowAnonymous && !c.BehindProxy
}

// agentsText names the agents. The demo agent explains itself.
func (c *Config) agentsText() string {
	if len(c.Agents) == 1 && c.Agents[0].Name == demoAgent && c.DefaultModel == demoModel {
		return `demo: scripted, no API key needed; say "help"`
	}
	names := make([]string, len(c.Agents))
	for i, a := range c.Agents {
		names[i] = a.Name
	}
	text := strings.Join(names, ", ")
	if c.DefaultModel != "" {
		text += "  (default model " + strings.ReplaceAll(c.DefaultModel, ",", ", then ") + ")"
	}
	return text
}

// durabilityLine explains the store's level; it returns "" if the level is not known.
func durabilityLine(level store.Level) string {
	meaning, ok := map[store.Level]string{
		store.LevelNone: "nothing survives the end of this process",
		store.LevelProcess: "commits survive the end of this process, but not necessarily a crash of the " +
			"machine or of the store",
		store.LevelMachine:  "commits survive a crash of the machine",
		store.LevelFailover: "commits survive the loss of Redis's primary, at a replica",
	}[level]
	if !ok {
		return ""
	}
	return fmt.Sprintf("  durability  %s: %s\n", level, meaning)
}
