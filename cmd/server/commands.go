package main

// The subcommands that do not need a store: validate, tools, key, healthcheck, version and help,
// and how a subcommand is run.

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
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
	case "tools":
		err = toolsCommand(args[1:], getenv, stdout, stderr)
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
	if errors.Is(err, errNotReady) {
		return exitFailed, true
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
		names[i] = a.Name + " (" + orDefault(strings.ReplaceAll(models[i], ",", ", then "), "default model") + ")"
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
	var who holdfast.Principal
	var roles, agents, expires string
	flags := flag.NewFlagSet("holdfast key", flag.ContinueOnError)
	flags.StringVar(&who.Tenant, "tenant", "", "the tenant whose data the key opens; tenants see nothing of each other")
	flags.StringVar(&who.User, "user", "", "the key's owner within the tenant")
	flags.StringVar(
		&roles,
		"roles",
		"user",
		"what the key may be used for, separated by commas: read, user, approver, operator, service",
	)
	flags.StringVar(&agents, "agents", "", "the agents that the key may be used with, separated by commas; default all")
	flags.StringVar(
		&expires,
		"expires",
		"",
		"when the key ends: a time like 2026-12-31T12:00:00Z, or how long from now, like 2160h; default never",
	)
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	var err error
	if who.Rights, err = rightsOf(roles, agents, expires, time.Now()); err != nil {
		return err
	}
	key, entry, err := apikey.NewFor(rand.Reader, who)
	if err != nil {
		return fmt.Errorf("%w: use --tenant TENANT --user USER", err)
	}
	fmt.Fprintf(stdout, `The key, shown only now. Give it to its user, who sends it as "Authorization: Bearer KEY":

  %s

Add this entry to HOLDFAST_API_KEYS (commas between entries) and restart the server, or as a line to the file that
it names with @ and send the server a SIGHUP:

  %s
`, key, entry)
	return nil
}

// rightsOf reads the flags of the rights of a key.
func rightsOf(roles, agents, expires string, now time.Time) (*access.Rights, error) {
	r := &access.Rights{}
	for _, name := range list(roles) {
		role, err := access.ParseRole(name)
		if err != nil {
			return nil, fmt.Errorf("--roles=%s: %w", roles, err)
		}
		r.Roles = append(r.Roles, role)
	}
	r.Agents = list(agents)
	if expires == "" {
		return r, nil
	}
	if d, err := time.ParseDuration(expires); err == nil && d > 0 {
		r.Expires = now.Add(d)
		return r, nil
	}
	var err error
	if r.Expires, err = time.Parse(time.RFC3339, expires); err != nil || !r.Expires.After(now) {
		return nil, fmt.Errorf(
			"--expires=%s is no time to come: write it like 2026-12-31T12:00:00Z, or 2160h for 90 days from now",
			expires,
		)
	}
	return r, nil
}

// errNotReady is the answer of a healthcheck, not a mistake in its arguments.
var errNotReady = errors.New("the server is not ready")

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
		return fmt.Errorf("%w: it does not answer: %w", errNotReady, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var body struct {
			Error struct{ Code, Message string }
		}
		if json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&body) != nil || body.Error.Code == "" {
			return fmt.Errorf("%w: status %d", errNotReady, res.StatusCode)
		}
		return fmt.Errorf("%w: status %d: %s: %s", errNotReady, res.StatusCode, body.Error.Code, body.Error.Message)
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
