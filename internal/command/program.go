// Package command is the program holdfast: its settings, its subcommands, and how it starts
// and ends.
package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-agents/holdfast/internal/settings"
	"github.com/holdfast-agents/holdfast/server"
)

// Main runs the program with the arguments, the environment and the output of the process,
// and ends the process.
func Main() {
	// The first signal shuts down gracefully; a second one ends the program at once.
	if needsReviver(os.Args[1:], os.Getenv) {
		os.Exit(revive(os.Args[1:], os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if hasParent(os.Getenv) {
		syscall.CloseOnExec(askDescriptor)
		ctx = withParent(ctx, os.Stdin, os.Exit)
	} else {
		context.AfterFunc(ctx, stop)
	}
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the program.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if code, ok := command(args, getenv, stdout, stderr); ok {
		return code
	}
	o, err := parseOptions(args, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, settings.Help())
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "holdfast: %v\n", err)
		return exitUsage
	case o.settings.Version:
		fmt.Fprintln(stdout, "holdfast", version())
		return exitOK
	}
	log := o.log(stderr)
	loaded, closeAll, err := o.load(log)
	switch {
	case server.IsFileMistake(err):
		fmt.Fprintln(stderr, err) // without a prefix, so that editors can follow the places
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "holdfast: %v\n", err)
		return exitUsage
	}
	defer within(closeTime, closeAll)
	cfg, who, err := o.config(loaded, log)
	if err != nil {
		fmt.Fprintf(stderr, "holdfast: %v\n", err)
		return exitUsage
	}
	cfg.Kill = o.kill()
	cfg.OperatorToken = o.operatorToken()
	hangUps := newReloader(who, o.agentsFile, loaded, log)
	defer hangUps.stop()
	s, err := server.New(cfg)
	if err != nil {
		fmt.Fprintf(stderr, "holdfast: %v\n", err)
		return exitFailed
	}
	hangUps.start(s)
	if err := serve(ctx, s, loaded, log, stdout); err != nil {
		fmt.Fprintf(stderr, "holdfast: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// serve runs the server until ctx is done, and ends it.
func serve(ctx context.Context, s *server.Server, loaded *server.Loaded, log *slog.Logger, stdout io.Writer) error {
	if len(loaded.Servers) > 0 {
		if err := s.Listen(ctx); err != nil {
			return err
		}
		_ = s.Banner(stdout)
		waitForServers(ctx, loaded, log)
	}
	switch err := s.Start(ctx); {
	case err != nil && ctx.Err() == nil:
		return err
	case err == nil && len(loaded.Servers) == 0:
		_ = s.Banner(stdout) // one that cannot be written is no reason to stop
	}
	<-ctx.Done()
	fmt.Fprintln(stdout, "holdfast: shutting down; press Ctrl-C again to stop at once (runs are "+
		"recovered at the next start)")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.GracePeriod)
	defer cancel()
	return s.Shutdown(last)
}

// closeTime is how long what the agents file has opened, such as connections to tool servers,
// may take to close. The process ends then in any case.
const closeTime = 2 * time.Second

// within calls f, and waits so long for it to return.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// release is the version of a build whose sources have no history, as in the image: the
// linker sets it.
var release string

// version is the program's version: a tag, or a commit, or "(devel)".
func version() string { return cmp.Or(release, server.Version()) }
