package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// The commands that look into a store without a server: what they have in common, and the
// ones that list. Each of the others has a file.

// storeCommand is what these commands have in common.
type storeCommand struct {
	getenv         func(string) string
	stdout, stderr io.Writer
	// parts are what the agents file may name besides what comes with Holdfast.
	parts server.Parts

	store  offline.Location
	tenant string
	thread string
}

// flags declares the flags that all these commands have.
func (c *storeCommand) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet("holdfast "+name, flag.ContinueOnError)
	f.StringVar(&c.store.RedisPrefix, "redis-prefix", cmp.Or(c.getenv("HOLDFAST_REDIS_PREFIX"), "hf:"),
		"the prefix of every key in Redis (HOLDFAST_REDIS_PREFIX)")
	f.StringVar(&c.store.RedisPasswordFile, "redis-password-file", c.getenv("HOLDFAST_REDIS_PASSWORD_FILE"),
		"a file with the password of Redis; by default the one in the store's URL (HOLDFAST_REDIS_PASSWORD_FILE)")
	f.StringVar(&c.tenant, "tenant", server.LocalPrincipal().Tenant,
		"whose thread it is; the default is that of a server without keys")
	f.StringVar(&c.thread, "thread", "", "the thread")
	return f
}

// parse parses the arguments. The first that is not a flag is the store; it returns the
// others. A store may be named by HOLDFAST_STORE instead, because it may contain a
// password, and everyone on the machine can see arguments.
func (c *storeCommand) parse(f *flag.FlagSet, args []string, others ...string) ([]string, error) {
	f.SetOutput(c.stderr)
	f.Usage = func() {
		fmt.Fprintf(c.stderr, "Usage: %s STORE %s\n\nSTORE is a URL like that of --store, or the path of a "+
			"folder (HOLDFAST_STORE).\n\n", f.Name(), strings.Join(append(slices.Clone(others), "[flags]"), " "))
		f.PrintDefaults()
	}
	var values []string
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if args = f.Args(); len(args) > 0 {
			values = append(values, args[0])
			args = args[1:]
		}
	}
	if named := c.getenv("HOLDFAST_STORE"); len(values) == len(others) && named != "" {
		values = append([]string{named}, values...)
	}
	if len(values) != 1+len(others) {
		return nil, fmt.Errorf("it takes %s, not %d arguments: see --help",
			strings.Join(append([]string{"STORE"}, others...), " "), len(values))
	}
	c.store.URL = values[0]
	return values[1:], nil
}

// on opens the store for f. An interrupt ends ctx; before that, while Redis is waited for,
// it ends the program.
func (c *storeCommand) on(f func(ctx context.Context, store store.Store) error) (err error) {
	store, err := offline.Open(c.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return f(ctx, store)
}

func (c *storeCommand) key() store.ThreadKey {
	return store.ThreadKey{Tenant: c.tenant, Thread: c.thread}
}

// inspect lists the threads of a store, or shows one.
func (c *storeCommand) inspect(args []string) error {
	f := c.flags("inspect")
	checkpoint := f.String("checkpoint", "", "show the thread as it was at this checkpoint")
	if _, err := c.parse(f, args); err != nil {
		return err
	}
	if c.thread == "" && *checkpoint != "" {
		return errors.New("--checkpoint needs --thread")
	}
	return c.on(func(ctx context.Context, store store.Store) error {
		if c.thread == "" {
			return listThreads(ctx, c.stdout, store)
		}
		in, err := offline.Inspect(ctx, store, c.key(), *checkpoint)
		if err != nil {
			return err
		}
		printThread(c.stdout, in)
		return nil
	})
}

func listThreads(ctx context.Context, w io.Writer, store store.Store) error {
	table := newTable(w)
	fmt.Fprintln(table, "TENANT\tTHREAD\tSTATUS\tITERATION\tMESSAGES\tBYTES\tLAST ACTIVE")
	err := offline.List(ctx, store, func(s *offline.Summary) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", printable(s.Key.Tenant), printable(s.Key.Thread), s.Status,
			s.Iteration, s.Messages, s.Bytes, clock(s.UpdatedAt))
	})
	if err := errors.Join(err, table.Flush()); err != nil {
		return err
	}
	return printFormats(ctx, w, store)
}

// printFormats says which data format is written into a store that servers share, and what
// each of them reads.
func printFormats(ctx context.Context, w io.Writer, db store.Store) error {
	f, err := offline.DataFormats(ctx, db)
	if err != nil || f.Reads == nil || f.Write == 0 {
		return err
	}
	fmt.Fprintf(w, "the servers write data format %d\n", f.Write)
	for _, process := range slices.Sorted(maps.Keys(f.Reads)) {
		fmt.Fprintf(w, "server %s reads up to %d\n", printable(process), f.Reads[process])
	}
	return nil
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
