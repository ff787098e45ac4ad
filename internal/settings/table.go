package settings

import "time"

// The table. A setting is one row of it, next to the settings that it belongs to, and its
// target is what it is for: mostly a member of the server's configuration.

// table returns the settings by group. Those about one machine, or about how this machine
// reaches others, are not in the file, which the servers of a store have in common.
func (s *Settings) table() []group {
	return []group{
		{name: "serve", text: "where the server listens, and what it runs", settings: s.serve()},
		{name: "store", text: "where threads are kept", settings: s.store()},
		{
			name:     "durability",
			text:     "what is saved when, and who continues a run",
			inFile:   true,
			settings: s.durability(),
		},
		{name: "limits", text: "how much there may be of what", inFile: true, settings: s.limits()},
		{name: "security", text: "who may call, and from where", settings: s.security()},
		{name: "demo", text: "for the demo model", settings: s.demo()},
	}
}

func (s *Settings) serve() []*Setting {
	c := &s.Config
	return []*Setting{
		row("addr", "localhost:8080", text(&c.Addr),
			"the address to listen on; without API keys or tokens, loopback only").oftenUsed(),
		row("config", "", text(&s.File), "the [agents file](#the-file); by default `holdfast.yaml`, if it exists").
			oftenUsed(),
		row("model", "", models(&c.DefaultModel),
			"the default [model](#models): `demo` (scripted, needs no key), `openai/NAME`, `responses/NAME`, "+
				"`anthropic/NAME` or `gemini/NAME`, or several with commas between them, each of which is asked if "+
				"the one before it fails; by default it depends on which providers' keys are set").oftenUsed(),
		row("chat", "false", yes(&c.Chat),
			"give every agent the [policy `chat`](protocol.md#the-policy-chat), which the pages of frontends expect: "+
				"a new message cancels, declines or abandons what is in its way, and an edit branches").oftenUsed(),
		row("public-url", "", text(&c.PublicURL),
			"where this server is reached from outside, like `https://agents.example.com`: the one-time URLs of "+
				"calls that are [finished from outside](tools.md#calls-finished-from-outside) begin with it; by "+
				"default `http://` and `--addr`, which only this machine can reach").oftenUsed(),
		row("metrics-addr", "", text(&c.MetricsAddr),
			"an address of its own for `/metrics`, which then is not on `--addr`"),
		row("log-format", "text", word(&s.LogFormat, "text", "json"), "`text` or `json`"),
		row("log-level", "info", level(&s.LogLevel), "`debug`, `info`, `warn` or `error`").oftenUsed(),
	}
}

func (s *Settings) store() []*Setting {
	c := &s.Config
	return []*Setting{
		row("store", "file:./data", text(&c.Store),
			"where threads are kept: `file:FOLDER`, `redis://HOST:6379/0` (also `rediss`, `redis+sentinel` and "+
				"`redis+cluster`) or `memory:`").oftenUsed(),
		row("redis-prefix", "hf:", text(&c.RedisPrefix), "the prefix of every key in Redis"),
		row("redis-password-file", "", text(&c.RedisPasswordFile),
			"a file with the password of Redis, which is read again for each connection, so that it can change; by "+
				"default the password in `--store`"),
		row("allow-eviction", "false", yes(&c.AllowEviction), "use a Redis that discards threads when it is full"),
		row("data-format", "", text(&c.DataFormat),
			"a number or `newest`: the data format that the servers of a shared store write once all of them read "+
				"it, the second half of a [rolling upgrade](operations.md#rolling-upgrades); by default they write "+
				"what they write already"),
	}
}

func (s *Settings) durability() []*Setting {
	c := &s.Config
	return []*Setting{
		row("durability", "store", text(&c.Durability),
			"which acknowledgment [counts](durability.md#--durability): `store` (the store's own), or, in Redis, "+
				"`failover` (a replica has the commit too) or `failover:N` (N replicas have it)").oftenUsed(),
		row("recover", "on", choice(&c.NoRecovery, "on", "off"),
			"`on`: runs cut off by a crash are continued; `off`: they wait for an empty-messages POST"),
		row("checkpoint-frequency", "per_iteration",
			word(&c.CheckpointFrequency, "per_iteration", "per_turn", "manual"), "[which checkpoints are "+
				"listed](durability.md#--checkpoint-frequency): `per_iteration`, `per_turn`, or `manual` (only "+
				"those that are asked for)"),
		row("retention", "full", kept(&c.KeepCheckpoints),
			"which checkpoints stay listed: `full` (the newest 100), `full:N`, `all` or `latest`"),
		row("pending-writes", "on", choice(&c.NoPendingWrites, "on", "off"),
			"`on`: each tool result is saved as soon as it exists; `off`: results of pure and idempotent tools are "+
				"saved when all calls of an answer are done"),
		row("on-revision", "adopt", word(&c.OnRevision, "adopt", "pin"),
			"`adopt`: a run that is taken over goes on with its agent as this server has it; `pin`: it waits for a "+
				"server with [the revision](durability.md#--on-revision-and---pin-timeout) that it was with"),
		row("pin-timeout", "15m", duration(&c.PinTimeout, time.Millisecond),
			"how long such a run waits, and one whose agent no server has; then it ends with "+
				"`revision_gone` or `agent_not_found`"),
		row("on-store-failure", "continue", choice(&c.StopOnStoreFailure, "continue", "stop"),
			"`continue`: a run whose store does not respond waits for it; `stop`: the run is given up at "+
				"once, and recovered later"),
		row("store-timeout", "30s", duration(&c.StoreTimeout, 0),
			"how long such a run waits before this server gives it up"),
		row("schema-changes", "warn", word(&c.SchemaChanges, "warn", "silent", "fail"),
			"if a checkpoint was written with other middleware states, `warn` reports the changes, `silent` does "+
				"not, `fail` refuses the run before anything is written"),
		row("on-newer-state", "refuse", choice(&c.ResetNewerStates, "refuse", "reset"),
			"if a stored middleware state has a version that is not known here, `refuse` the run, or `reset` the "+
				"state and keep its newer value aside"),
		row("lease", "3s", duration(&c.Lease, 0), "how long a silent process counts as alive"),
		row("delta-window", "0s", window(&c.DeltaWindow),
			"how long a model's words may wait for more before they are stored and shown; `0s`: each piece at once; "+
				"`auto`: only while the store is slow, for 250 ms at most"),
		row("archive-after", "5s", duration(&c.ArchiveAfter, 0),
			"how long the log of an ended run is kept as it was written; then it is stored without "+
				"what its messages contain"),
		row("delete-checkpoints-after", "0s", duration(&c.DeleteCheckpointsAfter, 0),
			"the age at which checkpoints are deleted, except a thread's newest; `0s`: never"),
		row("delete-threads-after", "0s", duration(&c.DeleteThreadsAfter, 0),
			"how long a thread must be idle before it is deleted; `0s`: never"),
	}
}

func (s *Settings) limits() []*Setting {
	c := &s.Config
	return []*Setting{
		row("max-runs", "1000", number(&c.MaxRuns, 1),
			"how many runs may run at a time; more get a 503 with Retry-After").oftenUsed(),
		row("max-iterations", "50", number(&c.MaxIterations, 1), "how many iterations a run gets between two requests"),
		row("max-connections", "10000", number(&c.MaxConnections, 1),
			"how many connections may be open; more wait, and those that nobody uses are closed to make room").
			withoutFlag(),
		row("max-connections-per-address", "-1", perAddress(&c.MaxConnectionsPerAddress),
			"how many of them one address may have, where an IPv6 network of 64 bits counts as one; more are closed; "+
				"`-1`: a quarter of all, but any number for this machine and with `--behind-proxy`; `0`: any number, "+
				"which clients need that [come through a proxy elsewhere](operations.md#connections-are-refused)").
			withoutFlag(),
		row("max-body", "4MiB", size(&c.MaxBody, 1), "the largest body of a request; larger ones get a 413").
			withoutFlag(),
		row("max-media-body", "8MiB", size(&c.MaxMediaBody, 1),
			"the same where more than half of it is media in base64, as with a photo; `maxBody`, if that is more; "+
				"the default is at most half of `maxBodies`").
			withoutFlag(),
		row("max-bodies", "64MiB", size(&c.MaxBodies, 1),
			"all bodies that are being received and decoded, half of it for one tenant; more "+
				"get a 503 with Retry-After").withoutFlag(),
		row("body-timeout", "30s", duration(&c.BodyTimeout, 0),
			"how long a body may take to arrive; then the request gets a 408 and the connection ends").withoutFlag(),
		row("min-rate", "16KiB", size(&c.MinRate, -1),
			"how much per second a client must take of a response while there is something to send, or it is "+
				"disconnected; `-1`: any").withoutFlag(),
		row("max-stream-bytes", "256MiB", bound(&c.MaxStreamBytes),
			"the history that all streams hold while their clients have not taken it; more get a 429 with "+
				"Retry-After; `0`: no limit").withoutFlag(),
		row("thread-warn-bytes", "0", size(&c.ThreadWarnBytes, 0),
			"a run on a larger thread warns in the log, a metric and the stream; `0`: never").withoutFlag(),
		row("thread-prune-bytes", "0", size(&c.ThreadPruneBytes, 0),
			"a larger thread that is not running is pruned to its newest checkpoint; `0`: never").withoutFlag(),
		row("thread-max-bytes", "256MiB", bound(&c.ThreadMaxBytes),
			"a larger thread cannot be continued until it is pruned, and nothing is lost; `0`: no limit").withoutFlag(),
	}
}

func (s *Settings) security() []*Setting {
	c := &s.Config
	return []*Setting{
		row("allow-anonymous", "false", yes(&c.AllowAnonymous),
			"serve everyone who can reach the address, without API keys"),
		row("hosts", "", list(&c.Hosts),
			"the names by which clients may address the server, separated by commas, with or without a port: "+
				"`agents.example.com`, `localhost:8080`; or `*`; by default any with API keys or tokens, else "+
				"loopback names and the host of `--addr`").oftenUsed(),
		row("behind-proxy", "false", yes(&c.BehindProxy),
			"a server for this machine only also serves what a proxy on it has forwarded, from wherever it comes"),
		row("origins", "", list(&c.AllowedOrigins),
			"the other origins whose pages may use the server, separated by commas: `https://app.example.com`; or `*`"),
		row("jwks", "", text(&s.Tokens.JWKS),
			"the URL of an identity provider's keys (its `jwks_uri`): callers may use its "+
				"[JWTs](security.md#tokens-of-an-identity-provider)"),
		row("jwt-issuer", "", text(&s.Tokens.Issuer), "the `iss` of its tokens"),
		row("jwt-audience", "", text(&s.Tokens.Audience), "the `aud` of tokens for this server"),
		row("jwt-tenant", "", text(&s.Tokens.Tenant), "the tenant of all tokens; by default a claim says it"),
		row("jwt-claims", "", claims(&s.Tokens),
			"which claim says what, if not `tenant=tenant,user=sub,roles=roles,agents=agents`"),
		row("jwt-own-roles", "false", yes(&s.Tokens.OwnRoles),
			"the claim for roles is for this server alone, so its roles count without the prefix `holdfast:`"),
	}
}

func (s *Settings) demo() []*Setting {
	return []*Setting{
		row("demo-delay", "20ms", duration(&s.DemoDelay, 0), "the demo model's pause between two words"),
		row("demo-journal", "", text(&s.DemoJournal),
			"a file that gets one line per model and tool call, to count after a `kill -9`; "+
				"adds the tool `charge_card`"),
		row("demo-kill", "true", yes(&s.DemoKill),
			"with the demo model, and for this machine only: the page can [kill the "+
				"server](operations.md#the-button-that-kills-the-server), which a second process then starts again"),
	}
}
