package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// replay runs a thread again from a checkpoint, and prints the result. It does so in a
// copy: it does not write to the store, and recovers no other thread in it.
func (c *storeCommand) replay(args []string) error {
	f := c.flags("replay")
	checkpoint := f.String("checkpoint", "", "where to start; holdfast inspect lists the checkpoints")
	config := f.String("config", c.getenv("HOLDFAST_CONFIG"), "the agents file (HOLDFAST_CONFIG)")
	file := f.String("o", "", "a file to write the new thread to, as export does; it must not exist yet")
	if _, err := c.parse(f, args); err != nil {
		return err
	}
	if c.thread == "" || *checkpoint == "" {
		return errors.New("what should be replayed? --thread ID --checkpoint ID; holdfast inspect lists them")
	}
	cfg, err := c.replayConfig(*config)
	if err != nil {
		return err
	}
	return c.on(func(ctx context.Context, db store.Store) error {
		in, err := server.InspectThread(ctx, db, c.key(), *checkpoint)
		if err != nil {
			return err
		}
		copied, err := server.CopyThread(ctx, db, c.key())
		if err != nil {
			return err
		}
		cfg.OpenStore = func() (store.Store, error) { return copied, nil }
		cfg.KeepCheckpoints = max(cfg.KeepCheckpoints, len(in.Checkpoints)+1)
		who := holdfast.Principal{Tenant: c.tenant, User: in.User}
		fork, err := runReplay(ctx, cfg, who, c.thread, *checkpoint, &replayPrinter{ctx: ctx, w: c.stdout, store: copied, tenant: c.tenant})
		if fork == "" || *file == "" {
			return err
		}
		return errors.Join(err, writeNew(*file, func(w io.Writer) error {
			return server.ExportThread(ctx, copied, store.ThreadKey{Tenant: c.tenant, Thread: fork}, w)
		}))
	})
}

// replayConfig returns a configuration with the agents that a server would have, without
// pauses and with a demo journal that discards everything.
func (c *storeCommand) replayConfig(file string) (server.Config, error) {
	args := []string{"--demo-delay=0s"}
	if file != "" {
		args = append(args, "--config="+file)
	}
	o, err := parseOptions(args, c.getenv, c.stderr)
	if err != nil {
		return server.Config{}, err
	}
	var journal io.Writer
	if o.demoJournal != "" {
		journal = io.Discard
	}
	agents, limits, err := o.configured(journal)
	if err != nil {
		return server.Config{}, err
	}
	return server.Config{
		Agents: agents, Limits: limits, MaxIterations: o.maxSteps, KeepCheckpoints: 1000,
		Log: slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, nil
}

// runReplay replays on a server that does not listen. The store stays open: it is a copy
// in memory, which has nothing to release.
func runReplay(ctx context.Context, cfg server.Config, who holdfast.Principal, thread, checkpoint string, p *replayPrinter) (fork string, err error) {
	s, err := server.New(cfg)
	if err != nil {
		return "", err
	}
	if err := s.StartEngine(ctx); err != nil {
		return "", err
	}
	defer func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.GracePeriod)
		defer cancel()
		err = errors.Join(err, s.Shutdown(grace))
	}()
	fork, err = s.Replay(ctx, who, thread, checkpoint, p.show)
	return fork, errors.Join(err, p.err)
}

// replayPrinter prints checkpoints, each with what is new since the previous one.
type replayPrinter struct {
	ctx    context.Context
	w      io.Writer
	store  store.Store
	tenant string
	shown  int    // messages
	state  string // the shared state
	err    error
}

func (p *replayPrinter) show(d threads.Detail) {
	in, err := server.InspectThread(p.ctx, p.store, store.ThreadKey{Tenant: p.tenant, Thread: d.ThreadID}, d.ID)
	if err != nil {
		p.err = errors.Join(p.err, err)
		return
	}
	fmt.Fprintf(p.w, "checkpoint %s: %s, before iteration %d, %s, %s\n", d.ID, d.Metadata.Source, d.Iteration, d.Status, count(len(in.History), "message"))
	printMessages(p.w, in.History[min(p.shown, len(in.History)):])
	p.shown = len(in.History)
	if state := string(in.State); state != p.state {
		fmt.Fprintf(p.w, "  shared state: %s\n", indented(state))
		p.state = state
	}
}
