package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// replay runs a thread again from a checkpoint, and prints each checkpoint as it comes. It does so in a
// copy: it does not write to the store, and recovers no other thread in it.
func (c *storeCommand) replay(args []string) error {
	f := c.flags("replay")
	checkpoint := f.String("checkpoint", "", "where to start; holdfast inspect lists the checkpoints")
	config := f.String("config", c.getenv("HOLDFAST_CONFIG"), "the agents file (HOLDFAST_CONFIG)")
	tools := f.Bool("run-tools", false,
		"run the tools of calls that were not recorded, with all their effects; otherwise such a call ends the replay")
	file := f.String("o", "", "a file to write the new thread to, as export does; it must not exist yet")
	if _, err := c.parse(f, args); err != nil {
		return err
	}
	if c.thread == "" || *checkpoint == "" {
		return errors.New("what should be replayed? --thread ID --checkpoint ID; holdfast inspect lists them")
	}
	cfg, loaded, err := c.replayConfig(*config)
	if err != nil {
		return err
	}
	defer loaded.Close()
	return c.on(func(ctx context.Context, db store.Store) error {
		waitForServers(ctx, loaded, cfg.Log)
		p := &replayPrinter{w: c.stdout}
		made, err := offline.Replay(ctx, db, c.key(), cfg,
			offline.ReplayOptions{Checkpoint: *checkpoint, RunTools: *tools, Show: p.show})
		if made == nil || *file == "" {
			return err
		}
		return errors.Join(err, writeNew(*file, func(w io.Writer) error {
			return offline.Export(ctx, made.Store, made.Key, w)
		}))
	})
}

// replayConfig returns a configuration with the agents that a server would have, without
// pauses and with a demo journal that discards everything. MCP servers are started, because
// the tools of a run are those that they have.
func (c *storeCommand) replayConfig(file string) (server.Config, *server.Loaded, error) {
	args := []string{"--demo-delay=0s"}
	if file != "" {
		args = append(args, "--config="+file)
	}
	o, err := parseOptions(args, c.getenv)
	if err != nil {
		return server.Config{}, nil, err
	}
	var journal io.Writer
	if o.settings.DemoJournal != "" {
		journal = io.Discard
	}
	log := slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	loaded, err := o.configured(journal, log)
	if err != nil {
		return server.Config{}, nil, err
	}
	return server.Config{
		Agents:        loaded.Agents,
		Limits:        loaded.Limits,
		MaxIterations: o.settings.Config.MaxIterations,
		Log:           log,
	}, loaded, nil
}

// replayPrinter prints checkpoints, each with what is new since the previous one.
type replayPrinter struct {
	w     io.Writer
	shown int    // messages
	state string // the shared state
}

func (p *replayPrinter) show(in *offline.Inspection) {
	cp := in.Shown
	fmt.Fprintf(p.w, "checkpoint %s: %s, before iteration %d, %s, %s\n", cp.ID, cp.Metadata.Source, cp.Iteration,
		cp.Status, count(len(in.History), "message"))
	printMessages(p.w, in.History[min(p.shown, len(in.History)):])
	p.shown = len(in.History)
	if state := string(in.State); state != p.state {
		fmt.Fprintf(p.w, "  shared state: %s\n", indented(state))
		p.state = state
	}
}
