// Command worker is a server of agents that are written in Go, with scripted models,
// for the tests of what middleware keeps when processes die.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/server"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// options are what the tests say in flags.
type options struct {
	addr         string
	store        string
	lease        time.Duration
	name         string
	path         string
	holds        string
	delay        time.Duration
	deployment   string
	tokens       int64
	cost         string
	schemas      string
	archiveAfter time.Duration
	service      string
	serves       bool
	reset        bool
	provider     string
	mcpOptions   string
	mortalMCP    string
	prefix       string
	witnessed    string
}

func read() *options {
	o := &options{}
	flag.StringVar(&o.addr, "addr", "", "where to listen")
	flag.StringVar(&o.store, "store", "", "where threads are kept")
	flag.DurationVar(&o.lease, "lease", time.Second, "how long a silent process counts as alive")
	flag.StringVar(&o.name, "name", "", "what the journal calls this process")
	flag.StringVar(&o.path, "journal", "", "the file that gets a line for what happens")
	flag.StringVar(&o.holds, "holds", "",
		"a folder with a file thread.moment.iteration for each place where a process stops for ever")
	flag.DurationVar(&o.delay, "delay", 2*time.Millisecond, "how long a model call and a tool call take")
	flag.StringVar(&o.deployment, "deployment", "A", "which states the agent keeper has: A or B")
	flag.Int64Var(&o.tokens, "tokens", 1_000_000, "how many tokens the tenant of the agent spender may use")
	flag.StringVar(&o.cost, "cost", "1000", "what the calls of the agent spender may cost its tenant")
	flag.StringVar(&o.schemas, "schema-changes", "", "as the server's flag of this name")
	flag.DurationVar(&o.archiveAfter, "archive-after", time.Minute, "as the server's flag of this name")
	flag.StringVar(&o.service, "service", "", "the URL of the service that the agent mortal calls")
	flag.BoolVar(&o.serves, "serve", false, "be that service")
	flag.BoolVar(&o.reset, "reset-newer", false, "start states of unknown versions again")
	flag.StringVar(&o.provider, "provider", "", "where a fake provider of models is; empty for none")
	flag.StringVar(&o.mcpOptions, "mcp", "", "the options of the MCP server of the agent remote, as JSON")
	flag.StringVar(&o.mortalMCP, "mortal-mcp", "", "the options of the MCP server that the agent mortal calls, as JSON")
	flag.StringVar(&o.prefix, "redis-prefix", "", "as the server's flag of this name")
	flag.StringVar(&o.witnessed, "witness", "", "the URL at which the agent late tells what happens; empty for none")
	flag.Parse()
	return o
}

func run() error {
	o := read()
	file, err := os.OpenFile(o.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer file.Close()
	w := &worker{name: o.name, holds: o.holds, journal: file, delay: o.delay}
	if o.serves {
		return w.serve(o.addr, o.path)
	}
	return w.listen(o)
}

// listen is the server of the agents.
func (w *worker) listen(o *options) error {
	keeper, err := w.keeper(o.deployment)
	if err != nil {
		return err
	}
	spender, err := w.spender(o.tokens, o.cost)
	if err != nil {
		return err
	}
	prompted, err := w.prompted(o.provider)
	if err != nil {
		return err
	}
	agents := append(
		[]holdfast.Agent{
			w.sturdy(),
			w.asker(),
			w.cashier(),
			keeper,
			spender,
			orders(),
			w.chained(),
			w.narrow(),
			w.teller(),
			w.holder(),
		},
		w.limited()...)
	if o.service != "" || o.mortalMCP != "" {
		mortal, end, err := w.mortal(o.service, o.mortalMCP)
		if err != nil {
			return err
		}
		defer end()
		agents = append(agents, mortal)
	}
	seen := &witness{o.name, o.witnessed}
	var told observe.Observer
	if seen.url != "" {
		agents, told = append(agents, seen.late()), seen.observer()
	}
	remotes, end, err := remote(o.mcpOptions)
	if err != nil {
		return err
	}
	defer end()
	return server.ListenAndServe(server.Config{
		Addr:             o.addr,
		Store:            o.store,
		RedisPrefix:      o.prefix,
		Lease:            o.lease,
		SchemaChanges:    o.schemas,
		ResetNewerStates: o.reset,
		ArchiveAfter:     o.archiveAfter,
		Observer:         told,
		Agents:           slices.Concat(agents, prompted, remotes),
		Limits: map[string]server.Limits{
			keeper.Name: {MaxIterations: keeperIterations},
			"orders":    {MaxIterations: orderIterations},
		},
	})
}
