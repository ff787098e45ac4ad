package command

import (
	"flag"
	"io"

	"github.com/holdfast-agents/holdfast/server"
)

// schemaCommand prints the JSON Schema of the agents file, for editors.
func schemaCommand(args []string, stdout, stderr io.Writer) error {
	if err := parseCommand(flag.NewFlagSet("holdfast schema", flag.ContinueOnError), args, stderr); err != nil {
		return err
	}
	_, err := stdout.Write(server.FileSchema())
	return err
}
