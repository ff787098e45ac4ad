package command

// The program's settings: its flags and environment variables, their checks, and the
// server's configuration that they make.

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/web"
)

// options are the program's settings: each is a flag and an environment variable of the
// same name, and the flag takes precedence. Secrets are variables only, because
// arguments are visible to everyone on the machine.
type options struct {
	addr           string
	store          string
	redisPrefix    string
	redisPassword  string
	durability     string
	model          string
	configFile     string
	retention      string
	frequency      string
	pendingWrites  string
	recovery       string
	onRevision     string
	pinTimeout     time.Duration
	chat           bool
	lease          time.Duration
	deltaWindow    time.Duration
	maxRuns        int
	maxBody        int64
	maxBodies      int64
	bodyTimeout    time.Duration
	minRate        int64
	maxStreamBytes int64
	connections    int
	perAddress     int
	maxSteps       int
	allowEviction  bool
	onFailure      string
	storeTimeout   time.Duration
	schemas        string
	newerState     string
	archiveAfter   time.Duration
	dropHistory    time.Duration
	dropThreads    time.Duration
	warnBytes      int64
	maxBytes       int64
	pruneBytes     int64
	anonymous      bool
	hosts          string
	behindProxy    bool
	origins        string
	publicURL      string
	metricsAddr    string
	jwks           string
	jwtIssuer      string
	jwtAudience    string
	jwtTenant      string
	jwtClaims      string
	dataFormat     string
	logFormat      string
	logLevel       slog.Level
	demoDelay      time.Duration
	demoJournal    string
	demoKill       bool
	version        bool

	// What was parsed, for whoever asks where a setting comes from.
	args    []string
	flagSet *flag.FlagSet

	getenv func(string) string
	// agentsFile is the agents file that was read; empty if there is none.
	agentsFile string
}

// flags declares the settings; docs/configuration.md has a table of them.
func (o *options) flags(stderr io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("holdfast", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.addr, "addr", "localhost:8080", "the address to listen on")
	fs.StringVar(
		&o.store,
		"store",
		defaultStore,
		"where threads are kept: file:FOLDER, redis://HOST:6379/0 (also rediss, redis+sentinel, "+
			"redis+cluster) or memory:",
	)
	fs.StringVar(&o.redisPrefix, "redis-prefix", "hf:", "the prefix of every key in Redis")
	fs.StringVar(
		&o.redisPassword,
		"redis-password-file",
		"",
		"a file with the password of Redis, which is read again for each connection; by default the one in --store",
	)
	fs.StringVar(
		&o.durability,
		"durability",
		"store",
		"which acknowledgment counts: store (the store's own), or, in Redis, failover (a replica has it too) or "+
			"failover:N (N replicas)",
	)
	fs.StringVar(
		&o.model,
		"model",
		"",
		"the default model: demo (scripted, needs no key), openai/NAME, responses/NAME, anthropic/NAME or "+
			"gemini/NAME, or several with commas between them, each of which is asked if the one before it fails; "+
			"without it, responses/gpt-6-luna if OPENAI_API_KEY is set "+
			"(openai/gpt-5-mini if OPENAI_BASE_URL is not OpenAI's), or else anthropic/claude-sonnet-5-5 if "+
			"ANTHROPIC_API_KEY is, or gemini/gemini-3.8-flash if GEMINI_API_KEY is, else demo",
	)
	fs.StringVar(&o.configFile, "config", "", "the agents file; default holdfast.yaml if it exists")
	fs.StringVar(
		&o.retention,
		"retention",
		"full",
		"which checkpoints stay listed: full (the newest 100), full:N, all, or latest",
	)
	fs.StringVar(
		&o.frequency,
		"checkpoint-frequency",
		"per_iteration",
		"which checkpoints are listed: per_iteration, per_turn or manual",
	)
	fs.StringVar(
		&o.pendingWrites,
		"pending-writes",
		"on",
		"on: each tool result is saved as soon as it exists; off: results of pure and idempotent tools are saved "+
			"when all calls of an answer are done",
	)
	fs.StringVar(
		&o.recovery,
		"recover",
		"on",
		"on: runs cut off by a crash are continued; off: they wait for an empty-messages POST",
	)
	fs.StringVar(
		&o.onRevision,
		"on-revision",
		"adopt",
		"adopt: a run that is taken over goes on with the revision of its agent that this server has; pin: it waits "+
			"for a server with the one that it was with",
	)
	fs.DurationVar(
		&o.pinTimeout,
		"pin-timeout",
		15*time.Minute,
		"how long a run waits for a server with its agent, or if it is pinned with its agent's revision; then it "+
			"ends with agent_not_found or revision_gone",
	)
	fs.BoolVar(
		&o.chat,
		"chat",
		false,
		"every agent has the policy chat: a new message cancels, declines or abandons what is in its "+
			"way, and an edit branches",
	)
	fs.StringVar(
		&o.onFailure,
		"on-store-failure",
		"continue",
		"continue: a run waits for a store that does not respond; stop: it is given up at once, and recovered later",
	)
	fs.DurationVar(&o.storeTimeout, "store-timeout", 30*time.Second,
		"how long a run waits for a store that does not respond before this process gives it up, to be recovered later")
	fs.StringVar(
		&o.schemas,
		"schema-changes",
		"warn",
		"what to do if a checkpoint was written with other middleware states: warn reports the changes, silent does "+
			"not, fail refuses the run",
	)
	fs.StringVar(
		&o.newerState,
		"on-newer-state",
		"refuse",
		"what to do if a stored middleware state has a version that is not known here: refuse the run, or reset the "+
			"state and keep its newer value aside",
	)
	fs.DurationVar(
		&o.archiveAfter,
		"archive-after",
		time.Minute,
		"how long the log of an ended run is kept as it was written; then it is stored without "+
			"what its messages contain",
	)
	fs.DurationVar(
		&o.dropHistory,
		"delete-checkpoints-after",
		0,
		"the age at which checkpoints are deleted, except a thread's newest; 0s: never",
	)
	fs.DurationVar(
		&o.dropThreads,
		"delete-threads-after",
		0,
		"how long a thread must be idle before it is deleted; 0s: never",
	)
	fs.Int64Var(
		&o.warnBytes,
		"thread-warn-bytes",
		0,
		"a run on a thread that takes more bytes warns in the log, a metric and the stream; 0: never",
	)
	fs.Int64Var(&o.pruneBytes, "thread-prune-bytes", 0,
		"a thread that takes more bytes and is not running is pruned to its newest checkpoint; 0: never")
	fs.Int64Var(
		&o.maxBytes,
		"thread-max-bytes",
		server.DefaultThreadMaxBytes,
		"a thread that takes more bytes cannot be continued until it is pruned; 0: no limit",
	)
	fs.StringVar(
		&o.dataFormat,
		"data-format",
		"",
		"the data format that the servers of a shared store write once all of them read it: a number, or newest; by "+
			"default they write what they write already",
	)
	fs.DurationVar(&o.lease, "lease", 3*time.Second, "how long a silent process counts as alive")
	fs.DurationVar(&o.deltaWindow, "delta-window", 0,
		"how long a model's words may wait for more before they are stored and shown; 0s: each piece at once")
	fs.IntVar(&o.maxRuns, "max-runs", 1000, "how many runs may run at a time; more get a 503")
	fs.Int64Var(&o.maxBody, "max-body", 4<<20, "the largest body of a request, in bytes; larger ones get a 413")
	fs.Int64Var(&o.maxBodies, "max-bodies", 64<<20,
		"how many bytes of bodies may be received and decoded at a time, half of them for one tenant; more get a 503")
	fs.DurationVar(
		&o.bodyTimeout,
		"body-timeout",
		30*time.Second,
		"how long a body may take to arrive; then the request gets a 408",
	)
	fs.Int64Var(
		&o.minRate,
		"min-rate",
		16<<10,
		"how many bytes per second a client must take of a response while there is something to send, or it "+
			"is disconnected; -1: any",
	)
	fs.Int64Var(&o.maxStreamBytes, "max-stream-bytes", 256<<20,
		"bytes of history that all streams hold while their clients have not taken them; more get a 429; 0: no limit")
	fs.IntVar(
		&o.connections,
		"max-connections",
		10_000,
		"how many connections may be open; more wait, and those that nobody uses are closed",
	)
	fs.IntVar(
		&o.perAddress,
		"max-connections-per-address",
		-1,
		"how many of them one address may have, an IPv6 network of 64 bits counts as one; more are closed; -1: a "+
			"quarter of --max-connections, but any number for this machine and with --behind-proxy; 0: any number, "+
			"for clients that come through a proxy elsewhere",
	)
	fs.IntVar(&o.maxSteps, "max-iterations", 50, "how many iterations a run gets between two requests")
	fs.BoolVar(&o.allowEviction, "allow-eviction", false, "use a Redis that discards threads when it is full")
	fs.BoolVar(&o.anonymous, "allow-anonymous", false, "serve everyone who can reach the address, without API keys")
	fs.StringVar(&o.origins, "origins", "",
		"the other origins whose pages may use the server, separated by commas: https://app.example.com; or *")
	o.callerFlags(fs)
	fs.StringVar(&o.logFormat, "log-format", "text", "text or json")
	fs.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	fs.DurationVar(&o.demoDelay, "demo-delay", 20*time.Millisecond, "the demo model's pause between two words")
	fs.StringVar(
		&o.demoJournal,
		"demo-journal",
		"",
		"a file that gets one line per model and tool call, to count after a kill -9; adds the tool charge_card",
	)
	fs.BoolVar(
		&o.demoKill,
		"demo-kill",
		true,
		"with the demo model, and for this machine only: the page can kill the server, which a second "+
			"process then starts again",
	)
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	fs.VisitAll(func(f *flag.Flag) {
		if f.Name != "version" {
			f.Usage += " (" + variable(f.Name) + ")"
		}
	})
	return fs
}

// callerFlags declares the settings about who may reach the server and how they identify
// themselves.
func (o *options) callerFlags(fs *flag.FlagSet) {
	fs.StringVar(
		&o.hosts,
		"hosts",
		"",
		"the names by which clients may address the server, separated by commas: agents.example.com, localhost:8080; "+
			"or *; by default any with API keys or tokens, else localhost and the host of --addr",
	)
	fs.BoolVar(
		&o.behindProxy,
		"behind-proxy",
		false,
		"a server for this machine only serves what a proxy on it has forwarded, from wherever it comes",
	)
	fs.StringVar(
		&o.publicURL,
		"public-url",
		"",
		"where this server is reached from outside, like https://agents.example.com: one-time URLs begin with it; by "+
			"default http:// and --addr",
	)
	fs.StringVar(&o.metricsAddr, "metrics-addr", "", "an address of its own for /metrics, which then is not on --addr")
	fs.StringVar(
		&o.jwks,
		"jwks",
		"",
		"the URL of an identity provider's keys (its jwks_uri): callers may identify themselves with its JWTs",
	)
	fs.StringVar(&o.jwtIssuer, "jwt-issuer", "", "the iss of its tokens")
	fs.StringVar(&o.jwtAudience, "jwt-audience", "", "the aud of tokens for this server")
	fs.StringVar(&o.jwtTenant, "jwt-tenant", "", "the tenant of all tokens; by default a claim says it")
	fs.StringVar(
		&o.jwtClaims,
		"jwt-claims",
		"",
		"which claim says what, if not tenant=tenant,user=sub,roles=roles,agents=agents",
	)
}

// variable returns the environment variable of a flag.
func variable(name string) string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func parseOptions(args []string, getenv func(string) string, stderr io.Writer) (*options, error) {
	o := &options{getenv: getenv, args: args}
	fs := o.flags(stderr)
	o.flagSet = fs
	var bad error
	fs.VisitAll(func(f *flag.Flag) {
		if v := getenv(variable(f.Name)); v != "" && f.Name != "version" && bad == nil {
			if err := fs.Set(f.Name, v); err != nil {
				bad = fmt.Errorf(
					"%s=%q cannot be used: %w; write it like the default, %s",
					variable(f.Name),
					v,
					err,
					f.DefValue,
				)
			}
		}
	})
	if bad != nil {
		return nil, bad
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: besides flags there are commands; see holdfast help", fs.Arg(0))
	}
	if o.model == "" {
		o.model = server.DefaultModel(getenv)
	}
	return o, o.validate()
}

// providers are the providers of models that --model may name.
var providers = []string{"openai", "responses", "anthropic", "gemini"}

func (o *options) validate() error {
	for _, c := range []struct {
		flag, value string
		known       []string
	}{
		{"recover", o.recovery, []string{"on", "off"}},
		{"on-revision", o.onRevision, []string{"adopt", "pin"}},
		{"pending-writes", o.pendingWrites, []string{"on", "off"}},
		{"on-store-failure", o.onFailure, []string{"continue", "stop"}},
		{"schema-changes", o.schemas, []string{"warn", "fail", "silent"}},
		{"on-newer-state", o.newerState, []string{"refuse", "reset"}},
		{"log-format", o.logFormat, []string{"text", "json"}},
	} {
		if !slices.Contains(c.known, c.value) {
			return fmt.Errorf("--%s=%s is not known: use %s", c.flag, c.value, strings.Join(c.known, " or "))
		}
	}
	if _, err := o.keepCheckpoints(); err != nil {
		return err
	}
	models := list(o.model)
	for _, model := range models {
		if provider, name, _ := strings.Cut(
			model,
			"/",
		); model != "demo" &&
			(name == "" || !slices.Contains(providers, provider)) {
			return fmt.Errorf(
				"--model=%s is not known: use demo, or openai/NAME, responses/NAME, anthropic/NAME or gemini/NAME "+
					"with the provider's name of the model, or several of them with commas between them",
				model,
			)
		}
	}
	if o.model = strings.Join(models, ","); o.model == "" {
		return fmt.Errorf("--model names no model: use demo, or leave it out")
	}
	if o.maxRuns < 1 || o.maxSteps < 1 {
		return fmt.Errorf("--max-runs and --max-iterations must be at least 1")
	}
	if o.perAddress < -1 {
		return fmt.Errorf(
			"--max-connections-per-address=%d is not possible: use a number, 0 for none, or -1 for a "+
				"quarter of --max-connections",
			o.perAddress,
		)
	}
	if o.pinTimeout <= 0 {
		return fmt.Errorf("--pin-timeout=%s is not possible: use a time above 0s", o.pinTimeout)
	}
	return nil
}

// keepCheckpoints reads --retention.
func (o *options) keepCheckpoints() (int, error) {
	switch number, numbered := strings.CutPrefix(o.retention, "full:"); {
	case o.retention == "full":
		return 100, nil
	case o.retention == "latest":
		return 1, nil
	case o.retention == "all":
		return -1, nil
	case numbered:
		if n, err := strconv.Atoi(number); err == nil && n >= 1 {
			return n, nil
		}
	}
	return 0, fmt.Errorf(
		"--retention=%s is not known: use full, full:N with a number from 1, all, or latest",
		o.retention,
	)
}

// log returns the program's log.
func (o *options) log(w io.Writer) *slog.Logger {
	h := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, h))
	}
	return slog.New(slog.NewTextHandler(w, h))
}

// config returns the server's configuration, and who may call it.
func (o *options) config(loaded *server.Loaded, log *slog.Logger) (cfg server.Config, who callers, err error) {
	if who, err = o.callers(log); err != nil {
		return cfg, who, err
	}
	keep, err := o.keepCheckpoints()
	if err != nil {
		return cfg, who, err
	}
	authenticate := who.authenticate()
	if o.anonymous && authenticate == nil {
		log.Warn(
			"everyone who can reach the address may use this server and see every thread: " +
				"HOLDFAST_ALLOW_ANONYMOUS is set",
		)
	}
	return server.Config{
		Addr:                     o.addr,
		Store:                    o.store,
		RedisPrefix:              o.redisPrefix,
		RedisPasswordFile:        o.redisPassword,
		Durability:               o.durability,
		AllowEviction:            o.allowEviction,
		NoRecovery:               o.recovery == "off",
		OnRevision:               o.onRevision,
		PinTimeout:               o.pinTimeout,
		Chat:                     o.chat,
		CheckpointFrequency:      o.frequency,
		KeepCheckpoints:          keep,
		NoPendingWrites:          o.pendingWrites == "off",
		SchemaChanges:            o.schemas,
		ResetNewerStates:         o.newerState == "reset",
		StopOnStoreFailure:       o.onFailure == "stop",
		StoreTimeout:             o.storeTimeout,
		ArchiveAfter:             o.archiveAfter,
		DeleteCheckpointsAfter:   o.dropHistory,
		DeleteThreadsAfter:       o.dropThreads,
		ThreadWarnBytes:          o.warnBytes,
		ThreadMaxBytes:           orNone(o.maxBytes),
		ThreadPruneBytes:         o.pruneBytes,
		DataFormat:               o.dataFormat,
		Lease:                    o.lease,
		DeltaWindow:              o.deltaWindow,
		MaxRuns:                  o.maxRuns,
		MaxIterations:            o.maxSteps,
		MaxBody:                  o.maxBody,
		MaxBodies:                o.maxBodies,
		BodyTimeout:              o.bodyTimeout,
		MinRate:                  o.minRate,
		MaxStreamBytes:           orNone(o.maxStreamBytes),
		MaxConnections:           o.connections,
		MaxConnectionsPerAddress: o.connectionsPerAddress(),
		Log:                      log,
		Agents:                   loaded.Agents,
		Limits:                   loaded.Limits,
		Quotas:                   loaded.Quotas,
		Prices:                   loaded.Prices,
		Authenticate:             authenticate,
		MultiTenant:              who.severalTenants,
		MultiUser:                who.severalUsers,
		AllowAnonymous:           o.anonymous,
		Hosts:                    list(o.hosts),
		BehindProxy:              o.behindProxy,
		AllowedOrigins:           list(o.origins),
		PublicURL:                o.publicURL,
		MetricsAddr:              o.metricsAddr,
		UI:                       web.Handler(),
		Version:                  version(),
		DefaultModel:             o.model,
		Settings:                 o.settings(),
		Kill:                     o.kill(),
	}, who, nil
}

// connectionsPerAddress returns the bound as server.Config has it, where 0 is the default and
// -1 none.
func (o *options) connectionsPerAddress() int {
	if o.perAddress > 0 {
		return o.perAddress
	}
	return -1 - o.perAddress
}

// orNone returns the bound as server.Config has it, where 0 is the default.
func orNone(bound int64) int64 {
	if bound == 0 {
		return -1
	}
	return bound
}

// list splits a text at commas.
func list(text string) []string {
	var entries []string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}
