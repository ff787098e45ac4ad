package command

// Which subcommands there are, and how one is run.

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/holdfast-agents/holdfast/server"
)

// storeCommands are the subcommands that look into a store without a server.
var storeCommands = map[string]func(*storeCommand, []string) error{
	"check":   (*storeCommand).check,
	"inspect": (*storeCommand).inspect,
	"export":  (*storeCommand).export,
	"import":  (*storeCommand).importThread,
	"replay":  (*storeCommand).replay,
	"backup":  (*storeCommand).backup,
	"salvage": (*storeCommand).salvage,
}

// command runs the subcommand that args starts with; ok is false if there is none.
func command(args []string, getenv func(string) string, stdout, stderr io.Writer) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch args[0] {
	case "validate":
		err = validateCommand(args[1:], getenv, stdout, stderr)
	case "tools":
		err = toolsCommand(args[1:], getenv, stdout, stderr)
	case "key":
		err = keyCommand(args[1:], stdout, stderr)
	case "healthcheck":
		err = healthCommand(args[1:], getenv, stdout, stderr)
	case "help":
		err = helpCommand(args[1:], stdout, stderr)
	case "schema":
		err = schemaCommand(args[1:], stdout, stderr)
	case "version":
		err = versionCommand(args[1:], stdout, stderr)
	default:
		run, known := storeCommands[args[0]]
		if !known {
			return 0, false
		}
		err = run(&storeCommand{getenv: getenv, stdout: stdout, stderr: stderr}, args[1:])
	}
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return exitOK, true
	case errors.Is(err, errProblems):
		return exitFailed, true
	case server.IsFileMistake(err):
		// One line per mistake, in the form that editors can follow; a prefix would break it.
		fmt.Fprintln(stderr, err)
	default:
		fmt.Fprintf(stderr, "holdfast %s: %v\n", args[0], err)
	}
	if errors.Is(err, errNotReady) {
		return exitFailed, true
	}
	return exitUsage, true
}
