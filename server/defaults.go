package server

import (
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/connections"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The defaults of a server's configuration.

// limits returns an agent's limits, falling back to the server's.
func (c Config) limits(agent string) Limits {
	l := c.Limits[agent]
	setDefault(&l.MaxIterations, c.MaxIterations)
	setDefault(&l.ModelTries, c.ModelTries)
	setDefault(&l.ModelTimeout, c.ModelTimeout)
	setDefault(&l.ModelIdleTimeout, c.ModelIdleTimeout)
	setDefault(&l.MaxAnswer, c.MaxAnswer)
	setDefault(&l.MaxCalls, c.MaxCalls)
	setDefault(&l.MaxArguments, c.MaxArguments)
	setDefault(&l.MaxMedia, c.MaxMedia)
	setDefault(&l.ToolTimeout, c.ToolTimeout)
	setDefault(&l.MaxToolResult, c.MaxToolResult)
	return l
}

func (c Config) withDefaults() Config {
	setDefault(&c.Addr, "localhost:8080")
	setDefault(&c.Version, Version())
	setDefault(&c.Store, "file:./data")
	setDefault(&c.CheckpointFrequency, string(loop.PerIteration))
	setDefault(&c.OnRevision, owner.Adopt)
	setDefault(&c.PinTimeout, 15*time.Minute)
	setDefault(&c.SchemaChanges, string(loop.SchemaWarn))
	setDefault(&c.KeepCheckpoints, 100)
	setDefault(&c.ArchiveAfter, 5*time.Second)
	setDefault(&c.StoreTimeout, 30*time.Second)
	setDefault(&c.Lease, 3*time.Second)
	setDefault(&c.MaxRuns, 1000)
	setDefault(&c.ThreadMaxBytes, DefaultThreadMaxBytes)
	setDefault(&c.MaxBody, 4<<20)
	setDefault(&c.MaxBodies, 16*c.MaxBody)
	setDefault(&c.MaxMediaBody, min(2*c.MaxBody, c.MaxBodies/2))
	setDefault(&c.BodyTimeout, 30*time.Second)
	setDefault(&c.MinRate, 16<<10)
	setDefault(&c.MaxStreamBytes, 256<<20)
	setDefault(&c.MaxConnections, 10_000)
	setDefault(&c.MaxIterations, 50)
	setDefault(&c.ModelTries, 3)
	setDefault(&c.ModelTimeout, 10*time.Minute)
	setDefault(&c.ModelIdleTimeout, 2*time.Minute)
	setDefault(&c.MaxAnswer, 1<<20)
	setDefault(&c.MaxCalls, 128)
	setDefault(&c.MaxArguments, 256<<10)
	setDefault(&c.MaxMedia, 8<<20)
	setDefault(&c.ToolTimeout, time.Minute)
	setDefault(&c.MaxToolResult, 256<<10)
	setDefault(&c.KeepAlive, 15*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Authorize == nil {
		c.Authorize = Authorize
	}
	c.Authorize = refusing(c.Authorize)
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// clientPolicy returns an agent's policy for clients with the server's defaults. Where
// callers are authenticated, somebody else than the operator writes what clients send.
func (c *Config) clientPolicy(a *holdfast.Agent) holdfast.ClientPolicy {
	p, shown := a.Client, thread.ShowAsSystem
	if c.Authenticate != nil {
		shown = thread.ShowAsUser
	}
	setDefault(&p.Import, thread.ImportAll)
	setDefault(&p.Instructions, shown)
	setDefault(&p.Context, shown)
	setDefault(&p.MediaURLs, thread.MediaHTTPS)
	return p
}

// perAddress returns how many connections one address may have.
func (c *Config) perAddress() connections.PerAddress {
	switch n := c.MaxConnectionsPerAddress; {
	case n > 0:
		return connections.PerAddress{Most: n, Loopback: true}
	case n < 0, c.BehindProxy:
		return connections.PerAddress{}
	}
	return connections.PerAddress{Most: max(1, c.MaxConnections/4)}
}
