package command

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/holdfast-agents/holdfast/server"
)

// validateCommand checks the agents file.
func validateCommand(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	path := getenv("HOLDFAST_CONFIG")
	if path == "" {
		path = defaultConfig
	}
	flags := flag.NewFlagSet("holdfast validate", flag.ContinueOnError)
	flags.StringVar(&path, "config", path, "the file to check (HOLDFAST_CONFIG)")
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	agents, models, err := server.ValidateAgents(cmp.Or(path, defaultConfig), fileParts(getenv))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s: copy holdfast.example.yaml, or name another file with --config", path)
	}
	if err != nil {
		return err
	}
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.Name + " (" + cmp.Or(strings.ReplaceAll(models[i], ",", ", then "), "default model") + ")"
	}
	fmt.Fprintf(stdout, "%s: ok, %s: %s\n", path, count(len(names), "agent"), strings.Join(names, ", "))
	return nil
}
