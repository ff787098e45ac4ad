package server

// The meaning of every setting of a server. The defaults are in defaults.go, and the checks in
// validate.go.

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/prometheus/client_golang/prometheus"
)

// AutoWindow as Config.DeltaWindow has a model's words wait for more only while the store is slow:
// while the median of its latest commits is above 5 ms, for four times that, and 250 ms at most. The
// first words of an answer never wait.
const AutoWindow time.Duration = loop.AutoWindow

// Config configures a [Server]. The zero value of every member is a sensible default,
// except that Agents must be set.
type Config struct {
	// Addr is the address to listen on; default "localhost:8080". Without
	// Authenticate or AllowAnonymous it must be a loopback address.
	Addr string
	// Store is where threads are kept: "file:FOLDER", "redis://HOST:PORT/DB" (also
	// rediss, redis+sentinel and redis+cluster) or "memory:"; default
	// "file:./data".
	Store string
	// RedisPrefix is the prefix of every key in Redis, so that several installations
	// can share one; default "hf:".
	RedisPrefix string
	// RedisPasswordFile is a file with the password of Redis, instead of the one in Store's
	// URL. It is read for each new connection, so that the password can change meanwhile.
	RedisPasswordFile string
	// Durability is "failover" or "failover:N" for a store in Redis whose commits must be at
	// one replica, or N, before they count and before anything of them is shown; empty, or
	// "store", if what the store itself acknowledges is enough.
	Durability string
	// OpenStore, if set, opens the store instead of Store; the server closes it.
	OpenStore func() (store.Store, error)
	// AllowEviction accepts a store that may discard threads when it is full.
	// Otherwise the server refuses to start on one.
	AllowEviction bool
	// Agents are the agents that can be run; the first is the default.
	Agents []holdfast.Agent
	// Authenticate identifies the caller from the request's headers, never from its
	// body; for API keys it is Authenticate of apikey.Keys. Without it, everyone on this
	// machine is the same user ([LocalPrincipal]), and nobody else is let in; see OperatorToken.
	Authenticate func(*http.Request) (holdfast.Principal, error)
	// OperatorToken is what operators of a server without Authenticate show as a bearer token;
	// the page takes it from the address that [Server.Banner] prints. It has 16 to 512 letters,
	// digits, "-" and "_". Default: a random one, which stays the same if the process is killed
	// and another one opens its embedded store.
	OperatorToken string
	// Authorize decides whether a caller may do something; its error refuses. Default
	// [Authorize], which a function of your own may call. It is asked for each request that
	// needs authentication, and by the methods of [Server] that take a caller; the actions are
	// those of package access. agent is the agent to run, to answer or to be shown, and empty
	// for all other actions. Operators must have the role too. A
	// [holdfast.Error] is shown to the caller; of any other error only that it is a refusal.
	Authorize func(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error
	// AllowAnonymous: without Authenticate, serve everyone who can reach Addr, which may then
	// be any address. All of them are one user, who sees every thread. Requests must be
	// addressed to one of Hosts, and pages of other sites may not change anything unless
	// AllowedOrigins lists them.
	AllowAnonymous bool
	// Hosts are the names by which clients may address the server, with or without a
	// port, or "*" alone for any. Default: with AllowAnonymous the loopback names and the
	// host of Addr; with Authenticate any. A server for its own machine always answers to
	// the loopback names too.
	Hosts []string
	// BehindProxy lets a server without Authenticate and AllowAnonymous serve requests
	// that a proxy on its machine has forwarded, from wherever they come.
	BehindProxy bool
	// AllowedOrigins are the other origins whose pages may use the server from a
	// browser: "https://app.example.com", "https://*.example.com", or "*" alone, which
	// needs Authenticate. Pages served by this machine may always use a server that
	// serves only this machine.
	AllowedOrigins []string
	// UI is served at / and /ui/; web.Handler() is the page that comes with Holdfast. nil
	// means no page.
	UI http.Handler
	// Version is shown in the banner, the agents' capabilities and /openapi.json; default
	// what [Version] returns.
	Version string
	// DefaultModel is what [Parts].DefaultModel was. [Server.Banner] shows it; nothing else
	// uses it.
	DefaultModel string
	// Settings are what the program was started with, for GET /settings, which shows them to
	// operators. No value may be a secret. nil means that the program does not say.
	Settings []Setting
	// Kill, if set, is what POST /demo/kill calls: it kills this process, which its starter
	// starts again. Only a server for its own machine has the route, and only while all its
	// models are scripted.
	Kill func()
	// Observer is told what the engine does, besides the log and the metrics. Its functions
	// are called in the middle of runs and must not block.
	Observer observe.Observer
	// Registerer, if set, gets the server's metrics too, as one collector; Shutdown
	// unregisters it. For several servers in one registry use
	// prometheus.WrapRegistererWith. By default they are only in a registry of the server's
	// own, with those of the Go runtime and the process.
	Registerer prometheus.Registerer
	// Gatherer is what GET /metrics serves; default the server's own registry.
	Gatherer prometheus.Gatherer
	// PublicURL is where this server is reached from outside, with the path under which a
	// proxy or a program serves it: the one-time URLs of calls that are finished from outside
	// begin with it. Default http:// and Addr, which only this machine can reach.
	PublicURL string
	// MetricsAddr is an address of its own for GET /metrics, which then is not on Addr.
	// Nothing guards it but the network. Empty: none.
	MetricsAddr string
	// NoRecovery: runs cut off by a crash are ended with RUN_ERROR cut_off and
	// wait for an empty-messages POST, instead of being continued.
	NoRecovery bool
	// OnRevision is what happens to a run that has lost its process, if its agent has another
	// revision here than the one that the run was with: "adopt" (default) continues it with
	// this one, and "pin" leaves it to a process that has the run's. An agent may say it
	// itself: [holdfast.Agent].OnRevision.
	OnRevision string
	// PinTimeout is how long such a run waits for that process, before it ends with the error
	// revision_gone; default 15m.
	PinTimeout time.Duration
	// Chat: every agent has the policy chat, whatever it says itself; see
	// [holdfast.Policy]. A request may choose otherwise.
	Chat bool
	// CheckpointFrequency is per_iteration (default), per_turn or manual: which
	// heads are listed. Resuming and recovering never depend on it.
	CheckpointFrequency string
	// NoPendingWrites: results of pure and idempotent tools are not saved as soon as
	// they exist, but when all calls of an answer are done.
	NoPendingWrites bool
	// StoreTimeout is how long a run waits for a store that does not respond. Then this
	// process gives the run up, to be recovered later; default 30s.
	StoreTimeout time.Duration
	// StopOnStoreFailure: a run does not wait for the store at all.
	StopOnStoreFailure bool
	// SchemaChanges is what happens to a run whose checkpoint was written with other
	// middleware states than its agent has now: "warn" (default) logs it and continues,
	// "silent" continues, "fail" refuses the run before anything is written.
	SchemaChanges string
	// ResetNewerStates: a state of a version that this program does not know is reset
	// and its newer value kept aside; otherwise the run is refused.
	ResetNewerStates bool
	// DeleteCheckpointsAfter is the age at which checkpoints are removed, but never a
	// thread's newest. 0 means never.
	DeleteCheckpointsAfter time.Duration
	// DeleteThreadsAfter is how long a thread must be idle before it is removed. 0
	// means never.
	DeleteThreadsAfter time.Duration
	// ThreadWarnBytes is the size of a thread above which its runs warn in the log and
	// the stream. 0 means never.
	ThreadWarnBytes int64
	// ThreadMaxBytes is the size of a thread above which its runs stop; nothing is
	// lost. Default [DefaultThreadMaxBytes]; negative means no bound.
	ThreadMaxBytes int64
	// ThreadPruneBytes is the size above which a thread that is not running is pruned
	// to its newest checkpoint. 0 means never.
	ThreadPruneBytes int64
	// ArchiveAfter is how long the log of an ended run is kept as it was written. Then
	// it is stored without the deltas, which its messages contain. Default five seconds.
	ArchiveAfter time.Duration
	// KeepCheckpoints is how many checkpoints of a thread stay listed; default
	// 100. 1 keeps only the latest, so there is no history; a negative number keeps all.
	KeepCheckpoints int
	// DataFormat asks the servers that share the store to write a newer data format: its
	// number, or "newest". They do once all of them read it. By default they write the
	// format that they write already, and in a new store the newest one. An embedded store
	// always has the newest format. A store of the program's own that is no
	// [store.FormatKeeper] has the one before, unless this says otherwise.
	DataFormat string
	// Lease is how long a silent process counts as alive; default 3s.
	Lease time.Duration
	// MaxRuns bounds concurrent runs; default 1000.
	MaxRuns int
	// Prices are what models cost by "provider/model", as the usage of runs names them; a * in a
	// name matches any text. Runs and threads are shown with their cost. Budgets have prices of
	// their own.
	Prices map[string]budget.Price
	// Quotas bounds what one tenant and one user may use.
	Quotas Quotas
	// MultiTenant reports whether several tenants share the server; then none may take more
	// than its share of MaxRuns. It is asked often and must not block. For API keys it is
	// SeveralTenants of apikey.Keys; nil means that there is one tenant.
	MultiTenant func() bool
	// MultiUser reports whether a tenant may have several users; then none may take all runs
	// and streams. It is asked often and must not block. For API keys it is SeveralUsers of
	// apikey.Keys; nil means that there may be, unless there is no Authenticate.
	MultiUser func(tenant string) bool
	// MaxStreamBytes bounds what all streams together hold in memory while their clients have
	// not taken it: the histories with which they begin. Default 256 MiB; a negative number
	// means that there is no bound.
	MaxStreamBytes int64
	// MaxBody bounds a request's body in bytes; default 4 MiB.
	MaxBody int64
	// MaxMediaBody bounds, in bytes, one of which more than half is media in base64; default
	// twice MaxBody, or half of MaxBodies if that is less.
	MaxMediaBody int64
	// MaxBodies bounds the bytes of all bodies that are being received and decoded; one
	// tenant's may be half of it. More get a 503. Decoding takes about six times as much
	// memory. Default 16 times MaxBody.
	MaxBodies int64
	// BodyTimeout is how long a request's body may take to arrive; default 30s. Then the
	// request gets a 408 and its connection ends.
	BodyTimeout time.Duration
	// MinRate is how many bytes per second a client must take of a response, while there is
	// something to send. One that has fallen ten seconds behind is disconnected; its run
	// continues. Default 16 KiB; a negative number means that only clients that do not read
	// at all are disconnected.
	MinRate int64
	// MaxConnections bounds the open connections of a server that listens itself. While all
	// are in use, new ones wait, and those of which nobody needs anything are closed: idle
	// ones, those of refused requests, and those that send no request. Default 10,000.
	MaxConnections int
	// MaxConnectionsPerAddress bounds those of one IPv4 address, or of one IPv6 network of 64
	// bits; more are closed at once. A negative number means that there is no bound, which a
	// server needs whose clients all come through one proxy. Default: a quarter of
	// MaxConnections, but not for the addresses of this machine, and none with BehindProxy.
	MaxConnectionsPerAddress int
	// MaxIterations bounds the iterations of a run between two requests; default 50.
	MaxIterations int
	// ModelTries is how often a model is asked for one answer, at most; default 3. Each of an
	// agent's fallbacks has as many attempts. How many are made depends on the failure: see
	// docs/models.md.
	ModelTries int
	// ModelTimeout bounds one attempt of a model call; default 10m.
	ModelTimeout time.Duration
	// ModelIdleTimeout bounds the time between two deltas of a model; default 2m.
	ModelIdleTimeout time.Duration
	// MaxAnswer bounds one answer of a model in bytes: text, reasoning and calls together;
	// default 1 MiB. A model that says more is stopped, and the run ends with model_failed.
	MaxAnswer int
	// MaxCalls bounds the tool calls of one answer; default 128.
	MaxCalls int
	// MaxArguments bounds the arguments of one tool call in bytes; default 256 KiB.
	MaxArguments int
	// MaxMedia bounds the images and other media that a model makes in one answer, in bytes
	// of base64; what is beyond it is left out. Default 8 MiB; stock clients take no event of
	// more than 10.
	MaxMedia int
	// ToolTimeout bounds one attempt of a tool call; default 60s.
	ToolTimeout time.Duration
	// MaxToolResult bounds a tool's result in bytes; default 256 KiB.
	MaxToolResult int
	// Limits are limits of individual agents, by agent name; a zero member there means
	// the server's.
	Limits map[string]Limits
	// DeltaWindow is how long a model's deltas may wait for more before they are
	// stored and shown. A longer window means fewer writes and larger pieces of text;
	// default 0, each piece at once. With AutoWindow they wait only while the store is slow.
	DeltaWindow time.Duration
	// KeepAlive is how long a stream may be silent before a comment is sent;
	// default 15s.
	KeepAlive time.Duration
	// Log gets what operators need to know; the default writes text to standard error.
	// Secrets with well-known formats are hidden in it: see [redaction.NewLogHandler].
	Log *slog.Logger
	// RedactPatterns are further patterns to hide in the log.
	RedactPatterns []redaction.Pattern
	// Now is the clock; default that of the store if all its processes share one (a
	// [store.Clock]), else time.Now.
	Now func() time.Time
}

// DefaultThreadMaxBytes is how large a thread may be before it must be pruned, in bytes: a
// run has all messages of its thread in memory.
const DefaultThreadMaxBytes = 256 << 20

// Limits bounds what one agent may use. A zero member means the server's limit.
type Limits struct {
	// MaxIterations is as in [Config].
	MaxIterations int
	// ModelTries is as in [Config].
	ModelTries int
	// ModelTimeout is as in [Config].
	ModelTimeout time.Duration
	// ModelIdleTimeout is as in [Config].
	ModelIdleTimeout time.Duration
	// MaxAnswer is as in [Config].
	MaxAnswer int
	// MaxCalls is as in [Config].
	MaxCalls int
	// MaxArguments is as in [Config].
	MaxArguments int
	// MaxMedia is as in [Config].
	MaxMedia int
	// ToolTimeout is as in [Config].
	ToolTimeout time.Duration
	// MaxToolResult is as in [Config].
	MaxToolResult int
}

// Setting is one of the settings that a program was started with.
type Setting struct {
	// Name is how the setting is called.
	Name string
	// Value is how it would be written. It is never a secret.
	Value string
	// Source is where the value comes from, like flag, env, file or default.
	Source string
	// Text says what the setting is for.
	Text string
}
