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

func run() error {
	addr := flag.String("addr", "", "where to listen")
	store := flag.String("store", "", "where threads are kept")
	lease := flag.Duration("lease", time.Second, "how long a silent process counts as alive")
	name := flag.String("name", "", "what the journal calls this process")
	path := flag.String("journal", "", "the file that gets a line for what happens")
	holds := flag.String(
		"holds",
		"",
		"a folder with a file thread.moment.iteration for each place where a process stops for ever",
	)
	delay := flag.Duration("delay", 2*time.Millisecond, "how long a model call and a tool call take")
	deployment := flag.String("deployment", "A", "which states the agent keeper has: A or B")
	tokens := flag.Int64("tokens", 1_000_000, "how many tokens the tenant of the agent spender may use")
	cost := flag.String("cost", "1000", "what the calls of the agent spender may cost its tenant")
	schemas := flag.String("schema-changes", "", "as the server's flag of this name")
	archiveAfter := flag.Duration("archive-after", time.Minute, "as the server's flag of this name")
	service := flag.String("service", "", "the URL of the service that the agent mortal calls")
	serves := flag.Bool("serve", false, "be that service")
	reset := flag.Bool("reset-newer", false, "start states of unknown versions again")
	provider := flag.String("provider", "", "where a fake provider of models is; empty for none")
	mcpOptions := flag.String("mcp", "", "the options of the MCP server of the agent remote, as JSON")
	mortalMCP := flag.String("mortal-mcp", "", "the options of the MCP server that the agent mortal calls, as JSON")
	prefix := flag.String("redis-prefix", "", "as the server's flag of this name")
	witnessed := flag.String("witness", "", "the URL at which the agent late tells what happens; empty for none")
	flag.Parse()
	file, err := os.OpenFile(*path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	defer file.Close()
	w := &worker{name: *name, holds: *holds, journal: file, delay: *delay}
	if *serves {
		return w.serve(*addr, *path)
	}
	keeper, err := w.keeper(*deployment)
	if err != nil {
		return err
	}
	spender, err := w.spender(*tokens, *cost)
	if err != nil {
		return err
	}
	prompted, err := w.prompted(*provider)
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
	if *service != "" || *mortalMCP != "" {
		mortal, end, err := w.mortal(*service, *mortalMCP)
		if err != nil {
			return err
		}
		defer end()
		agents = append(agents, mortal)
	}
	seen := &witness{*name, *witnessed}
	var told observe.Observer
	if seen.url != "" {
		agents, told = append(agents, seen.late()), seen.observer()
	}
	remotes, end, err := remote(*mcpOptions)
	if err != nil {
		return err
	}
	defer end()
	return server.ListenAndServe(server.Config{
		Addr:             *addr,
		Store:            *store,
		RedisPrefix:      *prefix,
		Lease:            *lease,
		SchemaChanges:    *schemas,
		ResetNewerStates: *reset,
		ArchiveAfter:     *archiveAfter,
		Observer:         told,
		Agents:           slices.Concat(agents, prompted, remotes),
		Limits: map[string]server.Limits{
			keeper.Name: {MaxIterations: keeperIterations},
			"orders":    {MaxIterations: orderIterations},
		},
	})
}
