package command

import (
	"flag"
	"fmt"
	"io"
)

// versionCommand prints what --version prints.
func versionCommand(args []string, stdout, stderr io.Writer) error {
	if err := parseCommand(flag.NewFlagSet("holdfast version", flag.ContinueOnError), args, stderr); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "holdfast", version())
	return nil
}
