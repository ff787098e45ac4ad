package main

// The subcommands that do not need a store: validate, key, healthcheck, version and help,
// and how a subcommand is run.

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/server"
)

// defaultConfig is read if it exists.
const defaultConfig = "holdfast.yaml"

// defaultStore is where threads are kept without --store.
const defaultStore = "file:./data"

// command runs the subcommand that args starts with; ok is false if there is none.
func command(args []string, getenv func(string) string, stdout, stderr io.Writer) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch args[0] {
	case "validate":
		err = validateCommand(args[1:], getenv, stdout, stderr)
	case "key":
		err = keyCommand(args[1:], stdout, stderr)
	case "healthcheck":
		err = healthCommand(args[1:], getenv, stdout, stderr)
	case "help":
		err = helpCommand(args[1:], stdout, stderr)
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
	return exitUsage, true
}

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
	agents, models, err := server.ValidateAgents(orDefault(path, defaultConfig), server.Parts{Getenv: getenv})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s: copy holdfast.example.yaml, or name another file with --config", path)
	}
	if err != nil {
		return err
	}
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.Name + " (" + orDefault(models[i], "default model") + ")"
	}
	fmt.Fprintf(stdout, "%s: ok, %s: %s\n", path, count(len(names), "agent"), strings.Join(names, ", "))
	return nil
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func keyCommand(args []string, stdout, stderr io.Writer) error {
	var tenant, user string
	flags := flag.NewFlagSet("holdfast key", flag.ContinueOnError)
	flags.StringVar(&tenant, "tenant", "", "the tenant whose data the key opens; tenants see nothing of each other")
	flags.StringVar(&user, "user", "", "the key's owner within the tenant")
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	key, entry, err := apikey.New(rand.Reader, tenant, user)
	if err != nil {
		return fmt.Errorf("%w: use --tenant TENANT --user USER", err)
	}
	fmt.Fprintf(stdout, `The key, shown only now. Give it to its user, who sends it as "Authorization: Bearer KEY":

  %s

Add this entry to HOLDFAST_API_KEYS (commas between entries), or as a line to the file it names with @, and
restart the server:

  %s
`, key, entry)
	return nil
}

// healthCommand asks a running server whether it can serve: for containers, which have
// no other program to ask with.
func healthCommand(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	addr := orDefault(getenv("HOLDFAST_ADDR"), "localhost:8080")
	flags := flag.NewFlagSet("holdfast healthcheck", flag.ContinueOnError)
	flags.StringVar(&addr, "addr", addr, "where the server listens (HOLDFAST_ADDR)")
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("the address %q cannot be used: write host:port", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	client := &http.Client{Timeout: 5 * time.Second}
	res, err := client.Get("http://" + net.JoinHostPort(host, port) + "/readyz")
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the server is not ready: status %d", res.StatusCode)
	}
	fmt.Fprintln(stdout, "ready")
	return nil
}

// versionCommand prints what --version prints.
func versionCommand(args []string, stdout, stderr io.Writer) error {
	if err := parseCommand(flag.NewFlagSet("holdfast version", flag.ContinueOnError), args, stderr); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "holdfast", version())
	return nil
}
