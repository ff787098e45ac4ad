package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/holdfast-agents/holdfast/offline"
)

// backup copies the embedded store, through the server if one has it open.
func (c *storeCommand) backup(args []string) error {
	f := flag.NewFlagSet("holdfast backup", flag.ContinueOnError)
	f.SetOutput(c.stderr)
	f.StringVar(&c.store.URL, "store", cmp.Or(c.getenv("HOLDFAST_STORE"), defaultStore),
		"the store, as the server has it (HOLDFAST_STORE)")
	f.Usage = func() {
		fmt.Fprintf(c.stderr, "Usage: %s DIR [flags]\n\nDIR must not exist yet.\n\n", f.Name())
		f.PrintDefaults()
	}
	dir, err := oneArgument(f, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := offline.Backup(ctx, c.store, dir); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "backed up to %s; look at it with: holdfast check %s\n", abs, dir)
	return nil
}

// oneArgument parses flags before and behind one argument.
func oneArgument(f *flag.FlagSet, args []string) (value string, err error) {
	if err := f.Parse(args); err != nil {
		return "", err
	}
	if f.NArg() > 0 {
		value = f.Arg(0)
		if err := f.Parse(f.Args()[1:]); err != nil {
			return "", err
		}
	}
	if value == "" || f.NArg() > 0 {
		return "", errors.New("it takes one argument, the new directory: see --help")
	}
	return value, nil
}
