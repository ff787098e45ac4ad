package server

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Config is what a [Server] is made of. The zero value of every member is a
// sensible default; only Agents must be set.
type Config struct {
	// Addr is where to listen; default "localhost:8080". Without Authenticate
	// or AllowAnonymous it must be a loopback address.
	Addr string
	// Store is where threads are kept: "bolt:PATH", "redis://HOST:PORT/DB" (also
	// rediss, redis+sentinel and redis+cluster) or "memory:"; default
	// "bolt:./data/holdfast.db".
	Store string
	// RedisPrefix begins every key in Redis, so that installations can share one;
	// default "hf:".
	RedisPrefix string
	// OpenStore, if set, is used instead of Store; the server closes it.
	OpenStore func() (holdfast.Store, error)
	// AllowEviction: use a store that may throw threads away when it is full,
	// which is refused otherwise.
	AllowEviction bool
	// Agents are what can be run; the first is the default.
	Agents []holdfast.Agent
	// Authenticate says who calls, from headers, never from a body. Without it
	// everybody on this machine is one user, and nobody else is let in.
	Authenticate func(*http.Request) (holdfast.Principal, error)
	// AllowAnonymous: without Authenticate, serve everybody who reaches Addr, which
	// may then be any address. All of them are one user, who sees every thread.
	AllowAnonymous bool
	// AllowedOrigins are the pages of other origins that may use the server from a
	// browser: "https://app.example.com", "https://*.example.com", or "*" alone.
	// Pages of this machine may always use a server without keys.
	AllowedOrigins []string
	// UI is served at / and /ui/; nil is none.
	UI http.Handler
	// Version is the program's own, for those who ask.
	Version string
	// NoRecovery: runs cut off by a crash are ended with RUN_ERROR cut_off and
	// wait for an empty-messages POST, instead of being continued.
	NoRecovery bool
	// CheckpointFrequency is per_iteration (default), per_turn or manual: which
	// heads are listed. Nothing that is needed to go on depends on it.
	CheckpointFrequency string
	// NoPendingWrites: results of pure and idempotent tools are not saved the moment
	// they exist, but when all calls of an answer are done.
	NoPendingWrites bool
	// StoreTimeout is how long a run waits for a store that does not answer before
	// it is given up here, to be recovered later; default 30 s. With
	// StopOnStoreFailure it does not wait at all.
	StoreTimeout       time.Duration
	StopOnStoreFailure bool
	// SchemaChanges is what becomes of a run whose checkpoint was written with other
	// middleware states than its agent has now: "warn" (default) says so and goes on,
	// "silent" goes on, "fail" refuses before anything is written.
	SchemaChanges string
	// ResetNewerStates: a state of a version that this program does not know begins
	// anew, and the newer one is kept aside; otherwise the run is refused.
	ResetNewerStates bool
	// DeleteCheckpointsAfter and DeleteThreadsAfter are retention: the age at which
	// checkpoints (never a thread's newest) and idle threads are removed. 0: never.
	DeleteCheckpointsAfter time.Duration
	DeleteThreadsAfter     time.Duration
	// ThreadWarnBytes and ThreadMaxBytes bound a thread: a run on a larger one says
	// so, or stops; nothing is lost. 0: no bound.
	ThreadWarnBytes int64
	ThreadMaxBytes  int64
	// ThreadPruneBytes is the size above which a thread that does not run is pruned
	// to its newest checkpoint. 0: never.
	ThreadPruneBytes int64
	// ArchiveAfter is how long the log of a run that has ended stays as it was
	// written; then it is stored without the deltas that its messages hold. Default
	// a minute.
	ArchiveAfter time.Duration
	// KeepCheckpoints is how many checkpoints of a thread stay listed; default
	// 100.
	KeepCheckpoints int
	// Lease is how long a silent process counts as alive; default 3s.
	Lease time.Duration
	// MaxRuns bounds concurrent runs; default 1000. MaxBody bounds a request's
	// body in bytes; default 16 MiB.
	MaxRuns int
	MaxBody int64
	// MaxIterations bounds a run between two requests; default 50.
	MaxIterations int
	// ModelTries is how often a model call is tried in all; default 3.
	ModelTries int
	// ModelTimeout bounds one model call, ModelIdleTimeout the time between two
	// of its deltas, ToolTimeout one tool call; defaults 10m, 2m, 60s.
	ModelTimeout     time.Duration
	ModelIdleTimeout time.Duration
	ToolTimeout      time.Duration
	// MaxToolResult bounds a tool's result in bytes; default 256 KiB.
	MaxToolResult int
	// Limits are limits of single agents, by name; what is zero there is as above.
	Limits map[string]Limits
	// DeltaWindow is how long a model's deltas may wait for more before they are
	// stored and shown: fewer writes for text that comes in larger pieces; default
	// 0, every piece at once.
	DeltaWindow time.Duration
	// KeepAlive is how long a stream may be silent before a comment is sent;
	// default 15s.
	KeepAlive time.Duration
	// Log gets what operators need to know; default: text to standard error. Secrets of
	// well-known shapes are hidden in it: see [middleware.RedactLogs].
	Log *slog.Logger
	// RedactPatterns are what is hidden in the log besides.
	RedactPatterns []middleware.RedactionPattern
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Limits bound what one agent may use. They mean what the members of [Config]
// with the same names mean.
type Limits struct {
	MaxIterations    int
	ModelTries       int
	ModelTimeout     time.Duration
	ModelIdleTimeout time.Duration
	ToolTimeout      time.Duration
	MaxToolResult    int
}

// limits returns an agent's limits, with the server's where it has none.
func (c Config) limits(agent string) Limits {
	l := c.Limits[agent]
	setDefault(&l.MaxIterations, c.MaxIterations)
	setDefault(&l.ModelTries, c.ModelTries)
	setDefault(&l.ModelTimeout, c.ModelTimeout)
	setDefault(&l.ModelIdleTimeout, c.ModelIdleTimeout)
	setDefault(&l.ToolTimeout, c.ToolTimeout)
	setDefault(&l.MaxToolResult, c.MaxToolResult)
	return l
}

func (c Config) withDefaults() Config {
	setDefault(&c.Addr, "localhost:8080")
	setDefault(&c.Store, "bolt:./data/holdfast.db")
	setDefault(&c.CheckpointFrequency, string(loop.PerIteration))
	setDefault(&c.SchemaChanges, string(loop.SchemaWarn))
	setDefault(&c.KeepCheckpoints, 100)
	setDefault(&c.ArchiveAfter, time.Minute)
	setDefault(&c.StoreTimeout, 30*time.Second)
	setDefault(&c.Lease, 3*time.Second)
	setDefault(&c.MaxRuns, 1000)
	setDefault(&c.MaxBody, 16<<20)
	setDefault(&c.MaxIterations, 50)
	setDefault(&c.ModelTries, 3)
	setDefault(&c.ModelTimeout, 10*time.Minute)
	setDefault(&c.ModelIdleTimeout, 2*time.Minute)
	setDefault(&c.ToolTimeout, time.Minute)
	setDefault(&c.MaxToolResult, 256<<10)
	setDefault(&c.KeepAlive, 15*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (c *Config) validate() error {
	if len(c.Agents) == 0 {
		return errors.New("no agent is configured: set Config.Agents")
	}
	names := map[string]bool{}
	for _, a := range c.Agents {
		switch {
		case a.Name == "":
			return errors.New("an agent has no name: set Agent.Name")
		case names[a.Name]:
			return fmt.Errorf("two agents are named %q: give each a name of its own", a.Name)
		case a.Model == nil:
			return fmt.Errorf("agent %q has no model: set Agent.Model", a.Name)
		}
		names[a.Name] = true
		if err := validateTools(a); err != nil {
			return err
		}
	}
	if err := c.validateModes(); err != nil {
		return err
	}
	if err := validatePatterns(c.RedactPatterns); err != nil {
		return err
	}
	if c.DeltaWindow < 0 || c.DeltaWindow > 10*time.Second {
		return fmt.Errorf("a delta window of %s is not possible: use 0s to 10s", c.DeltaWindow)
	}
	if c.Lease < 100*time.Millisecond {
		return fmt.Errorf("a lease of %s is too short: use at least 100ms; 3s is a good choice", c.Lease)
	}
	origins, err := hfhttp.ParseOrigins(c.AllowedOrigins, false)
	if err != nil {
		return err
	}
	if c.Authenticate == nil && !c.AllowAnonymous && origins.Any() {
		return errors.New(`the origin "*" lets any page use a server without keys: configure API keys, or list the origins that you mean`)
	}
	return c.validateAddr()
}

func (c *Config) validateModes() error {
	switch loop.Frequency(c.CheckpointFrequency) {
	case loop.PerIteration, loop.PerTurn, loop.Manual:
	default:
		return fmt.Errorf("unknown checkpoint frequency %q: use per_iteration, per_turn or manual", c.CheckpointFrequency)
	}
	switch loop.SchemaMode(c.SchemaChanges) {
	case loop.SchemaWarn, loop.SchemaFail, loop.SchemaSilent:
	default:
		return fmt.Errorf("unknown mode %q for schema changes: use warn, fail or silent", c.SchemaChanges)
	}
	return nil
}

// validatePatterns asks the middleware of the same options.
func validatePatterns(patterns []middleware.RedactionPattern) error {
	if len(patterns) == 0 {
		return nil
	}
	raw, err := json.Marshal(middleware.RedactionOptions{Patterns: patterns})
	for _, kind := range middleware.Kinds() {
		if kind.Name == "redaction" && err == nil {
			_, err = kind.New(raw)
		}
	}
	if err != nil {
		return fmt.Errorf("Config.RedactPatterns cannot be used: %w", err)
	}
	return nil
}

func validateTools(a holdfast.Agent) error {
	tools := map[string]bool{}
	for _, t := range a.Tools {
		name := t.Spec().Name
		if name == "" || tools[name] {
			return fmt.Errorf("agent %q has a tool without a name, or two tools named %q: give each a name of its own", a.Name, name)
		}
		tools[name] = true
	}
	return nil
}

func (c *Config) validateAddr() error {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("the address %q cannot be used: write host:port, like localhost:8080", c.Addr)
	}
	if c.Authenticate != nil || c.AllowAnonymous || host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("without authentication the server listens on loopback only, not on %q: use localhost:PORT, configure API keys (HOLDFAST_API_KEYS, or Config.Authenticate), or let everybody in with HOLDFAST_ALLOW_ANONYMOUS=1", c.Addr)
	}
	return nil
}

// newID makes an id: the prefix says of what. Ids of things are in the order of
// time, so that a store appends them side by side; without a prefix it is all
// random, for fences.
func newID(now func() time.Time) func(prefix string) string {
	return func(prefix string) string {
		random := strings.ToLower(rand.Text())
		if prefix == "" {
			return random[:16]
		}
		id := strconv.FormatInt(now().UnixMilli(), 32)
		return prefix + "_" + id + random[:10]
	}
}
