package command

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/holdfast-agents/holdfast/internal/settings"
	"github.com/holdfast-agents/holdfast/server"
)

// The common part of all subcommands.

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// defaultConfig is read if it exists.
const defaultConfig = "holdfast.yaml"

// defaultStore is where threads are kept without --store.
const defaultStore = "file:./data"

// errProblems: a check found problems, which it has printed.
var errProblems = errors.New("problems were found")

// errNotReady is the answer of a healthcheck, not a mistake in its arguments.
var errNotReady = errors.New("the server is not ready")

// parseCommand parses the flags of a subcommand.
func parseCommand(fs *flag.FlagSet, args []string, stderr io.Writer) error {
	fs.SetOutput(stderr)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: it takes only flags, see --help", fs.Arg(0))
	}
	return nil
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// fileParts are what every reader of the agents file knows besides what comes with Holdfast.
func fileParts(getenv func(string) string) server.Parts {
	return server.Parts{Getenv: getenv, Settings: settings.Checks()}
}
