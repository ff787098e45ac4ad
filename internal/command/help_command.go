package command

import (
	"flag"
	"fmt"
	"io"

	"github.com/holdfast-agents/holdfast/internal/settings"
)

// helpCommand lists the commands and the settings that most people need, or all settings.
func helpCommand(args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && args[0] == "all" {
		fmt.Fprint(stdout, settings.Help())
		return nil
	}
	if err := parseCommand(flag.NewFlagSet("holdfast help", flag.ContinueOnError), args, stderr); err != nil {
		return err
	}
	fmt.Fprint(stdout, `holdfast [flags]        runs the server
holdfast help all       lists every setting
holdfast validate       checks the file with the agents
holdfast schema         prints the JSON Schema of that file, for editors
holdfast tools          lists the tools that agents can use, with their effects and why
holdfast key            makes an API key
holdfast healthcheck    asks a running server whether it can serve
holdfast version        prints the version

holdfast backup DIR     copies the embedded store to a new directory, also while a
                        server uses it: [--store STORE]
holdfast salvage STORE DIR
                        saves the threads that are whole of a damaged embedded store to
                        a new directory, and lists what is not

Looking into a store; STORE is a URL like that of --store, or the path of a folder. A
folder must not be in use by a server.

holdfast check STORE    finds damage, and states of middleware that need migrations;
                        exits with 1 if something cannot be continued;
                        --index puts right by what servers find threads
holdfast inspect STORE  lists the threads, or shows one: --thread ID [--checkpoint ID]
holdfast export STORE   writes a thread as JSON: --thread ID [-o FILE]
holdfast import STORE FILE
                        makes a thread from what export has written
holdfast replay STORE   runs a thread again from a checkpoint, in a copy, with the
                        recorded results of its tools: --thread ID --checkpoint ID
                        [--run-tools]

holdfast COMMAND --help lists the flags of a command.

The flags of the server that most people need:

`, settings.Often())
	return nil
}
